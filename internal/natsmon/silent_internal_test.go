package natsmon

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// silent never answers, like a port that a network policy closes.
type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// A silent server does not make the service unready. All servers are requested concurrently, so that
// silent ones delay nothing.
func TestCheck_WaitsForAllSilentServersTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New([]string{"http://a", "http://b", "http://c", "http://d", "http://e"}, slog.New(slog.DiscardHandler))
		m.client.Transport = silent{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
		defer cancel()
		require.NoError(t, m.Check(ctx))
		require.NoError(t, ctx.Err())
	})
}
