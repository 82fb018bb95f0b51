package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/dispatcher/retention"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const year = 365 * 24 * time.Hour

// clockRig is a clock whose host and real time a test moves.
type clockRig struct {
	*retention.Clock

	store  *memory.Store
	host   time.Time
	newest time.Time
	took   time.Duration
}

func newClock(t *testing.T, store *memory.Store, host, newest time.Time) *clockRig {
	t.Helper()
	r := &clockRig{store: store, host: host, newest: newest}
	r.Clock = retention.NewClock(store, func() time.Time { return r.host },
		func(context.Context) (uint64, time.Time, error) { return 1, r.newest, nil })
	r.Measure(func() time.Duration { d := r.took; r.took = 0; return d })
	return r
}

// pass lets real time pass, on both clocks.
func (r *clockRig) pass(d time.Duration) { r.host, r.took = r.host.Add(d), r.took+d }

func (r *clockRig) read(t *testing.T) time.Time {
	t.Helper()
	now, behind, err := r.Advance(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.host.Sub(now), behind)
	require.False(t, now.After(r.host), "never later than the host's clock")
	return now
}

func TestClock_FollowsTheHost(t *testing.T) {
	t.Parallel()
	r := newClock(t, memory.New(), start, start.Add(-time.Minute))
	require.Equal(t, start.Add(-time.Minute), r.read(t), "it starts with the newest record")
	for range 5 {
		r.pass(time.Minute)
		r.read(t)
	}
	require.Equal(t, r.host, r.read(t))
}

// A clock that jumps ahead makes little due at once, also after restarts of the host.
func TestClock_DoesNotJump(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r := newClock(t, store, start, start)
	require.Equal(t, start, r.read(t))
	r.host = r.host.Add(year)
	require.Equal(t, start, r.read(t))
	r.pass(time.Hour)
	require.Equal(t, start.Add(24*time.Hour), r.read(t), "a day in an hour")
	for range 3 { // restarts win nothing: records of the wrong time do not, either
		r = newClock(t, store, r.host.Add(time.Minute), r.host)
		r.took = time.Hour
		require.Equal(t, start.Add(24*time.Hour), r.read(t))
	}
	r.host = start.Add(2 * time.Hour) // the clock is set right
	require.Equal(t, r.host, r.read(t))
	r.pass(48 * time.Hour)
	require.Equal(t, r.host, r.read(t))
}

// The clock was wrong when retention was switched on.
func TestClock_StartsWithTheNewestRecord(t *testing.T) {
	t.Parallel()
	r := newClock(t, memory.New(), start.Add(year), start)
	require.Equal(t, start, r.read(t))
}

func TestClock_OfAnEmptyLogDecidesNothing(t *testing.T) {
	t.Parallel()
	r := newClock(t, memory.New(), start.Add(year), time.Time{})
	require.Equal(t, r.host, r.read(t))
	r.newest = start
	require.Equal(t, start, r.read(t), "the first record decides")
	stored, err := retention.Read(t.Context(), r.store, func() time.Time { return start })
	require.NoError(t, err)
	require.True(t, stored.IsZero(), "nothing was stored yet")
}

// Two processes that both move the clock do not move it further than one.
func TestClock_IsMovedByOneProcessAtATime(t *testing.T) {
	t.Parallel()
	store := memory.New()
	a, b := newClock(t, store, start, start), newClock(t, store, start, start)
	a.read(t)
	b.read(t)
	a.pass(time.Minute)
	b.pass(time.Minute)
	a.read(t)
	_, _, err := b.Advance(t.Context())
	require.Error(t, err, "the other one has moved it")
	require.Equal(t, a.host, b.read(t))
}
