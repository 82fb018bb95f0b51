package jetstream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog"
)

func TestCheck_RejectsALogWithTooFewReplicas(t *testing.T) {
	t.Parallel()
	nc := natsdtest.Connect(t)
	log, err := Open(t.Context(), nc, DefaultConfig())
	require.NoError(t, err)
	require.NoError(t, log.Check(t.Context()))
	log.cfg.Replicas = 3
	err = log.Check(t.Context())
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.ErrorContains(t, err, "1 copies, want 3")
}
