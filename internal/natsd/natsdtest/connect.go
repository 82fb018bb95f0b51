package natsdtest

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
)

// Connect starts a server with an empty store and connects to it as the host does. Both end with
// the test.
func Connect(t testing.TB) *nats.Conn {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}
