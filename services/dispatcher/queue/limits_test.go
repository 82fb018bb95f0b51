package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/queue"
)

func TestScheduler_NeverExecutesMoreThanTheConcurrencyLimit(t *testing.T) {
	t.Parallel()
	r, g := inNATS(t), newGauge()
	for range 2 {
		r.dispatcher(t, queue.Config{Size: 8}, g.brief(3*time.Millisecond))
	}
	one := &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 1}}
	for _, id := range ids("one", 40) {
		r.start(t, "one", id, one)
	}
	three := &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 3}}
	for _, id := range ids("three", 40) {
		r.start(t, "three", id, three)
	}
	eventually(t, "all are executed", func() bool { return g.distinct() == 80 })
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Equal(t, 1, g.most["one"])
	require.LessOrEqual(t, g.most["three"], 3)
	require.Greater(t, g.most["three"], 1)
}

func TestScheduler_KeysOfAConcurrencyLimitDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	release := make(chan struct{})
	r.dispatcher(t, queue.Config{Size: 8}, g.hold(release))
	for _, key := range []string{"x", "x", "y"} {
		r.start(t, "a", fmt.Sprintf("%s%d", key, time.Now().UnixNano()), &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Key: key, Limit: 1}})
	}
	eventually(t, "one of each key", func() bool { return g.distinct() == 2 })
	close(release)
	eventually(t, "all", func() bool { return g.distinct() == 3 })
	require.Equal(t, 2, g.most["a"])
}

func TestScheduler_TenantLimitCountsAllWorkflowsAndChanges(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	r.tenants = map[string]queue.Tenant{"a": {Concurrency: 2}}
	r.dispatcher(t, queue.Config{Size: 8}, g.brief(2*time.Millisecond))
	for _, id := range ids("a", 20) {
		r.start(t, "a", id, nil)
	}
	eventually(t, "all", func() bool { return g.distinct() == 20 })
	require.LessOrEqual(t, g.most["a"], 2)
}

// A changed limit holds immediately, also for runs that wait already.
func TestScheduler_ChangedLimitsHoldForWaitingRuns(t *testing.T) {
	t.Parallel()
	t.Run("a rate is removed", func(t *testing.T) {
		t.Parallel()
		r, g := inMemory(), newGauge()
		r.set("a", queue.Tenant{Rate: 1, Period: time.Hour})
		d := r.dispatcher(t, queue.Config{Size: 8}, g.brief(0))
		for _, id := range ids("a", 5) {
			r.start(t, "a", id, nil)
		}
		eventually(t, "four wait", func() bool {
			depth, err := d.Depth(t.Context())
			return err == nil && depth.Limited == 4 && g.distinct() == 1
		})
		r.set("a", queue.Tenant{})
		eventually(t, "all", func() bool { return g.distinct() == 5 })
	})
	t.Run("a concurrency limit is added", func(t *testing.T) {
		t.Parallel()
		r, g := inMemory(), newGauge()
		release := make(chan struct{})
		d := r.dispatcher(t, queue.Config{Size: 4}, g.hold(release))
		for _, id := range ids("a", 12) {
			r.start(t, "a", id, nil)
		}
		eventually(t, "eight wait", func() bool { return d.Parked("a") == 8 })
		r.set("a", queue.Tenant{Concurrency: 1})
		began := time.Now()
		close(release)
		eventually(t, "all", func() bool { return g.distinct() == 12 })
		require.Less(t, time.Since(began), 3*time.Second, "a free permit ends the wait of the lane")
	})
}

// A run that the rate of its workflow refuses does not use the rate of its tenant.
func TestScheduler_ARefusedRunUsesNoRate(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	r.set("a", queue.Tenant{Rate: 4, Period: time.Hour})
	d := r.dispatcher(t, queue.Config{Size: 8}, g.brief(0))
	slow := &wire.Schedule{Rate: &wire.RateLimit{Limit: 1, PeriodMs: time.Hour.Milliseconds()}}
	for _, id := range ids("slow", 6) {
		r.start(t, "a", id, slow)
	}
	eventually(t, "five wait", func() bool {
		depth, err := d.Depth(t.Context())
		return err == nil && depth.Limited == 5 && g.distinct() == 1
	})
	for _, id := range ids("plain", 3) {
		r.start(t, "a", id, nil)
	}
	eventually(t, "the rest of the tenant's rate", func() bool { return g.distinct() == 4 })
}

func TestScheduler_StartsNoMoreThanTheRateAllows(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	r.dispatcher(t, queue.Config{Size: 8}, g.brief(0))
	s := &wire.Schedule{Rate: &wire.RateLimit{Limit: 4, PeriodMs: 1000}}
	for _, id := range ids("a", 9) {
		r.start(t, "a", id, s)
	}
	eventually(t, "all", func() bool { return g.distinct() == 9 })
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, id := range g.order {
		if i >= 4 {
			apart := g.at[id].Sub(g.at[g.order[i-4]])
			require.Greater(t, apart, 900*time.Millisecond, "%d and %d", i-4, i) // charged a moment before they start
		}
	}
}

func TestScheduler_ServesHigherPrioritiesFirst(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	release := make(chan struct{})
	d := r.dispatcher(t, queue.Config{Size: 1}, g.hold(release))
	r.start(t, "a", "busy", nil)
	eventually(t, "the slot is taken", func() bool { return g.ran("busy") == 1 })
	for id, p := range map[string]int{"p5": 5, "m5": -5, "p0": 0} {
		r.start(t, "a", id, &wire.Schedule{Priority: &p})
	}
	eventually(t, "all wait", func() bool { return d.Parked("a") == 3 })
	close(release)
	eventually(t, "all", func() bool { return g.distinct() == 4 })
	require.Equal(t, []string{"busy", "p5", "p0", "m5"}, g.order)
}

// The limit of a woken run is in its record, which is read from the log.
func TestScheduler_WokenRunsAreUnderTheirLimit(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	limit := &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 1}}
	d := r.dispatcher(t, queue.Config{Size: 4}, g.brief(0))
	r.start(t, "a", "sleeper", limit)
	eventually(t, "it went to sleep", func() bool { return g.ran("sleeper") == 1 })
	d.stop()

	release := make(chan struct{})
	d = r.dispatcher(t, queue.Config{Size: 4}, g.hold(release))
	r.start(t, "a", "busy", limit)
	eventually(t, "the permit is taken", func() bool { return g.ran("busy") == 1 })
	run := subject.Run{Tenant: "a", WorkflowID: "wf", RunID: "sleeper"}
	last, err := r.log.Last(t.Context(), run)
	require.NoError(t, err)
	_, err = r.log.Append(t.Context(), frame.New(run, subject.Wake, last.Head(), nil), last.Pos)
	require.NoError(t, err)
	eventually(t, "it waits", func() bool {
		depth, err := d.Depth(t.Context())
		return err == nil && depth.Limited == 1
	})
	require.Equal(t, 1, g.ran("sleeper"))
	require.True(t, d.HasTicket(run))
	require.False(t, d.HasTicket(subject.Run{Tenant: "b", WorkflowID: "wf", RunID: "sleeper"}))
	close(release)
	eventually(t, "it goes on", func() bool { return g.ran("sleeper") == 2 })
}

// distantLog takes a moment to read a frame.
type distantLog struct{ runlog.Log }

func (l distantLog) First(ctx context.Context, r subject.Run) (*frame.Frame, error) {
	select {
	case <-time.After(5 * time.Millisecond):
		return l.Log.First(ctx, r)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The timers of one tenant are due together. Their limits are in the log. Another tenant's new run does
// not wait until they were read one after the other. On an idle machine it starts within a second.
func TestScheduler_WokenRunsOfOneTenantDoNotDelayAnother(t *testing.T) {
	r, g := inMemory(), newGauge()
	n := 10_000
	if testing.Short() { // the race detector makes this ten times as slow
		n = 3_000
	}
	limit := &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 1}}
	q := r.queue(t)
	var heads []*frame.Frame
	for _, id := range ids("a", n) { // they started, and sleep
		r.start(t, "a", id, limit)
		d, err := q.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Ack())
		heads = append(heads, d.Frame())
	}
	for _, f := range heads {
		_, err := r.log.Append(t.Context(), frame.New(f.Run, subject.Wake, f.Head(), nil), f.Pos)
		require.NoError(t, err)
	}
	r.log = distantLog{r.log}
	release := make(chan struct{})
	defer close(release)
	d := r.dispatcher(t, queue.Config{Size: 16}, g.hold(release))
	began := time.Now()
	r.start(t, "b", "b_new", nil)
	eventually(t, "the new run", func() bool { return g.ran("b_new") == 1 })
	t.Logf("behind %d woken runs: %s", n, time.Since(began))
	require.Less(t, time.Since(began), 10*time.Second, "one after the other, the reads take 15 seconds or more")
	eventually(t, "all others wait", func() bool {
		depth, err := d.Depth(t.Context())
		return err == nil && depth.Parked+depth.Limited == n-1
	})
	require.Equal(t, 2, g.distinct())
}
