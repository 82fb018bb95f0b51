package mcp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/tool"
)

// Progress keeps a call alive, up to the longest time of a call.
func TestProgress_KeepsACallAlive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// report returns the progress after n periods of 40 s; ok is false for none.
		report func(n int) (progress float64, ok bool)
		ends   time.Duration
	}{
		"no report":             {func(int) (float64, bool) { return 0, false }, time.Minute},
		"one report":            {func(n int) (float64, bool) { return 0, n == 1 }, 100 * time.Second},
		"always":                {func(n int) (float64, bool) { return float64(n), true }, tool.MaxTimeout},
		"the same, again":       {func(int) (float64, bool) { return 7, true }, 100 * time.Second},
		"backwards":             {func(n int) (float64, bool) { return float64(-n), true }, 100 * time.Second},
		"begins below zero":     {func(n int) (float64, bool) { return float64(n - 10), n < 3 }, 140 * time.Second},
		"it stops to report it": {func(n int) (float64, bool) { return float64(n), n < 4 }, 180 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c calls
				began := time.Now()
				ctx, _, token, end := c.begin(t.Context(), time.Minute)
				defer end()
				for n := 1; ctx.Err() == nil; n++ {
					select {
					case <-ctx.Done():
					case <-time.After(40 * time.Second):
						if progress, ok := tc.report(n); ok {
							c.notify(&sdk.ProgressNotificationParams{ProgressToken: token, Progress: progress})
							c.notify(&sdk.ProgressNotificationParams{ProgressToken: "other", Progress: 1e9})
							c.notify(&sdk.ProgressNotificationParams{ProgressToken: 1.5, Progress: 1e9})
						}
					}
				}
				require.Equal(t, tc.ends, time.Since(began))
				require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
			})
		})
	}
}

// A call that has ended leaves nothing behind, and its token is used by no other call.
func TestProgress_EndsWithTheCall(t *testing.T) {
	t.Parallel()
	var c calls
	_, _, first, end := c.begin(t.Context(), time.Minute)
	end()
	require.Empty(t, c.open)
	c.notify(&sdk.ProgressNotificationParams{ProgressToken: first, Progress: 1})
	ctx, _, second, end := c.begin(t.Context(), time.Minute)
	defer end()
	require.NotEqual(t, first, second)
	require.NoError(t, ctx.Err())
}
