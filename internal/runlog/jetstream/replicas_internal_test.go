package jetstream

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog"
)

func TestCheck_RefusesALogWithFewerCopiesThanWanted(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := Open(t.Context(), nc, DefaultConfig())
	require.NoError(t, err)
	require.NoError(t, log.Check(t.Context()))
	log.cfg.Replicas = 3
	err = log.Check(t.Context())
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.ErrorContains(t, err, "1 copies, and 3 are wanted")
}
