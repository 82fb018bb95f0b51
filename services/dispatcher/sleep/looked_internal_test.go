package sleep

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

// endless has more overdue timers than are read, however often.
type endless struct{ given int }

func (e *endless) Due(_ context.Context, _ time.Time, _ Timer, limit int) ([]Timer, error) {
	out := make([]Timer, limit)
	for i := range out {
		e.given++
		out[i] = Timer{Run: subject.Run{Tenant: "acme", RunID: strconv.Itoa(e.given)}, DueMs: int64(e.given)}
	}
	return out, nil
}

// willing wakes everybody.
type willing struct{}

func (willing) Wake(context.Context, subject.Run, frame.Head) error { return nil }
func (willing) WakeLost(context.Context, subject.Run) error         { return nil }

// Where the read model lags, more become overdue than a sweep reads, and none is the last.
func TestSweep_RemembersWhomItLookedAtNoLongerThanItLeavesThemAlone(t *testing.T) {
	t.Parallel()
	now, every := time.Unix(1_800_000_000, 0), 2*time.Second
	w := New(Config{SweepEvery: every}, &endless{}, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	w.Bind(willing{})
	for range 100 {
		w.sweep(t.Context())
		now = now.Add(every)
	}
	require.Len(t, w.looked, int(lookAgain/every)*sweepLimit)
}
