package natslink_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
)

func TestEnsure_RetriesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	asked := 0
	got, err := natslink.Ensure(t.Context(), func(ctx context.Context) (string, error) {
		if asked++; asked == 1 {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "made", nil
	})
	require.NoError(t, err)
	require.Equal(t, "made", got)
	require.Equal(t, 2, asked)
}

func TestEnsure_DoesNotRetryARefusal(t *testing.T) {
	t.Parallel()
	asked, refused := 0, errors.New("no")
	_, err := natslink.Ensure(t.Context(), func(context.Context) (string, error) {
		asked++
		return "", refused
	})
	require.ErrorIs(t, err, refused)
	require.Equal(t, 1, asked)
}

func TestEnsure_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	_, err := natslink.Ensure(ctx, func(ctx context.Context) (string, error) {
		asked++
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, asked)
}
