package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	close(release)
	eventually(t, "it goes on", func() bool { return g.ran("sleeper") == 2 })
}
