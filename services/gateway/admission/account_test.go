package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/share"
	"waybill.dev/waybill/services/gateway/admission"
)

// An answer larger than the pool is sent when nothing else is, instead of never.
func TestAccount_AnOversizedAnswerIsSentAlone(t *testing.T) {
	t.Parallel()
	pool := share.New(1000, false)
	g := admission.NewGate(admission.Config{Bytes: pool}, clock, one)
	first, other := g.Bytes(admission.Caller{}), g.Bytes(admission.Caller{})
	require.NoError(t, other.Take(10))
	require.Error(t, first.Take(5000))
	other.Close()
	require.NoError(t, first.Take(5000))
	require.EqualValues(t, 1000, pool.Used())
	require.Error(t, other.Take(10))
	first.Close()
	require.Zero(t, pool.Used())
}
