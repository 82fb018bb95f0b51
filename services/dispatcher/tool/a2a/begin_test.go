package a2a_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/callguard"
)

// A process that may begin no call sends no message, and the message counts as not sent.
func TestRun_SendsOnlyWithPermission(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, _ string, d *double, url string) {
		r, lost := runner(t, url), errors.New("lost")
		mayNot := callguard.Guard{
			Quiet: context.WithoutCancel(t.Context()),
			Await: func(context.Context) error { return lost },
		}
		res := r.Run(callguard.With(t.Context(), mayNot), task(`{"agent":"x","message":"echo"}`), nil)
		require.ErrorIs(t, res.Interrupted, lost)
		require.True(t, res.Unsent)
		require.Empty(t, d.messages)
	})
}
