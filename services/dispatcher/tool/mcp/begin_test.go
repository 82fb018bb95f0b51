package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/callguard"
)

// A process that may begin no call makes none, although it is connected, and the call counts as not
// sent.
func TestRun_CallsOnlyWithPermission(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	d := newDouble(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil && bytes.Contains(body, []byte(`"tools/call"`)) {
				calls.Add(1)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		})
	})
	r, lost := runner(t, d.URL), errors.New("lost")
	may := callguard.Guard{Quiet: context.WithoutCancel(t.Context()), Await: func(context.Context) error { return nil }}
	mayNot := may
	mayNot.Await = func(context.Context) error { return lost }
	config := task(`{"server":"x","tool":"echo"}`)
	for range 2 {
		res := r.Run(callguard.With(t.Context(), mayNot), config, nil)
		require.ErrorIs(t, res.Interrupted, lost)
		require.True(t, res.Unsent)
		require.Zero(t, calls.Load())
	}
	want(t, r.Run(callguard.With(t.Context(), may), config, nil))
	require.EqualValues(t, 1, calls.Load())
}
