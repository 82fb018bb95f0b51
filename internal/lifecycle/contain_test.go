package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/lifecycle"
)

func TestContain_TurnsAPanicIntoAnErrorAndLogsTheStack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	err := lifecycle.Contain(log, "run", func() error { panic("secret value") }, "run_id", "run_1")
	require.ErrorIs(t, err, lifecycle.ErrPanic)
	require.Contains(t, out.String(), "run_id=run_1")
	require.Contains(t, out.String(), "contain_test.go")
	require.NotContains(t, out.String(), "secret value", "a panic's value may hold anything")

	want := errors.New("refused")
	require.Equal(t, want, lifecycle.Contain(log, "run", func() error { return want }))
}

func TestRestart_StartsALoopAgainAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		err := lifecycle.Restart(t.Context(), slog.New(slog.DiscardHandler), "loop", func(context.Context) error {
			if starts++; starts < 3 {
				panic("boom")
			}
			return context.Canceled
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 3, starts)
	})
}

func TestRestart_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := lifecycle.Restart(ctx, slog.New(slog.DiscardHandler), "loop", func(context.Context) error {
		cancel()
		panic("boom")
	})
	require.ErrorIs(t, err, context.Canceled)
}
