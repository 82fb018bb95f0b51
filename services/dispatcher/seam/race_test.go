package seam

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
)

// unchanged is a redactor that knows no secret.
type unchanged struct{}

func (unchanged) Redact(_ context.Context, _, _ string, _ bool, docs [][]byte) ([][]byte, bool, error) {
	return docs, false, nil
}

// careless is a log that accepts an append wherever the run's log ends: its claims are no claims.
type careless struct{ *memory.Log }

func (c careless) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if _, err := c.Last(ctx, f.Run); err == nil && after > 0 {
		return after + 1, nil // nothing conflicts, and nothing is written
	}
	return c.Log.Append(ctx, f, after)
}

func newRace(t *testing.T) (Race, *memory.Log) {
	t.Helper()
	log := memory.New()
	return Race{Log: log, Redactor: unchanged{}, Clock: time.Now, Logger: slog.New(slog.DiscardHandler)}, log
}

func TestRace_OneExecutorPerformsTheEffect(t *testing.T) {
	t.Parallel()
	for n := MinExecutors; n <= MaxExecutors; n++ {
		r, _ := newRace(t)
		c, err := r.Run(t.Context(), "acme", n)
		require.NoError(t, err)
		require.Equal(t, 1, c.Delivered)
		require.Len(t, c.Minted, n)
		for _, id := range c.Minted {
			require.Equal(t, c.InvocationID, id)
		}
	}
}

// A log that does not compare what it appends to lets every executor perform the effect: the race
// sees that.
func TestRace_SeesALogWithoutClaims(t *testing.T) {
	t.Parallel()
	r, log := newRace(t)
	r.Log = careless{log}
	c, err := r.Run(t.Context(), "acme", 3)
	require.NoError(t, err)
	require.Equal(t, 3, c.Delivered)
	require.Len(t, c.Minted, 3)
}

func TestRace_RejectsOtherSizes(t *testing.T) {
	t.Parallel()
	r, _ := newRace(t)
	for _, n := range []int{-1, 0, 1, MaxExecutors + 1} {
		_, err := r.Run(t.Context(), "acme", n)
		require.Equal(t, fault.InvalidArgument, fault.CodeOf(err), n)
	}
}
