package timers

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// pages has a number of pages of overdue timers that never change.
type pages int

func (p pages) Due(_ context.Context, _ time.Time, after DueRun, limit int) ([]DueRun, error) {
	out := make([]DueRun, 0, limit)
	for n := after.DueMs + 1; n <= int64(p)*int64(limit)-1 && len(out) < limit; n++ {
		out = append(out, DueRun{Run: subject.Run{Tenant: "acme", RunID: strconv.FormatInt(n, 10)}, DueMs: n})
	}
	return out, nil
}

// willing wakes every run.
type willing struct{}

func (willing) Wake(context.Context, subject.Run, frame.Head) error            { return nil }
func (willing) WakeLost(context.Context, subject.Run, time.Time) (bool, error) { return true, nil }

// A checked run is forgotten when its pause ends.
func TestSweep_ForgetsSkippedRuns(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	w := New(Config{}, pages(3), func() time.Time { return now }, slog.New(slog.DiscardHandler))
	w.Bind(willing{})
	require.NoError(t, w.sweep(t.Context(), DueRun{}, now))
	require.Len(t, w.skipUntil, 3*pageSize-1)
	now = now.Add(recheckAfter)
	w.forgetSkipped(now)
	require.Empty(t, w.skipUntil)
}
