package share_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/share"
)

func TestTurns_LimitEachCaller(t *testing.T) {
	t.Parallel()
	turns := share.NewTurns(2)
	first, err := turns.Take(t.Context(), "a")
	require.NoError(t, err)
	_, err = turns.Take(t.Context(), "a")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = turns.Take(ended, "a")
	require.ErrorIs(t, err, context.Canceled, "the third waits")
	other, err := turns.Take(t.Context(), "b")
	require.NoError(t, err)
	other()
	first()
	first()
	again, err := turns.Take(t.Context(), "a")
	require.NoError(t, err)
	again()
}
