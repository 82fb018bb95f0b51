package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/dispatcher/queue"
)

const patience = 20 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 5*time.Millisecond, what)
}

func TestScheduler_HandsOutRunsWithoutTicketsWhileSlotsAreFree(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	d := r.dispatcher(t, queue.Config{Size: 8}, g.brief(time.Millisecond))
	for _, id := range ids("run", 50) {
		r.start(t, "a", id, nil)
		eventually(t, "executed", func() bool { return g.ran(id) == 1 })
	}
	_, err := r.tickets.Get(t.Context(), "ready.a.run_00000.1")
	require.Error(t, err)
	require.Zero(t, d.Parked("a"))
}

// One tenant has thousands of long runs; another tenant's new run starts within a second.
func TestScheduler_OneTenantsBacklogDoesNotDelayAnother(t *testing.T) {
	r, g := inNATS(t), newGauge()
	n := 10000
	if testing.Short() {
		n = 2000
	}
	release := make(chan struct{})
	d := r.dispatcher(t, queue.Config{Size: 16}, g.hold(release))
	var wg sync.WaitGroup
	errs := make(chan error, n)
	all := ids("a", n)
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				errs <- r.append(t.Context(), "a", all[i], nil)
			}
		})
	}
	wg.Wait()
	for range n {
		require.NoError(t, <-errs)
	}
	began := time.Now()
	r.start(t, "b", "b_later", nil) // behind the others that are not parked yet
	eventually(t, "the run started during the burst", func() bool { return g.ran("b_later") == 1 })
	t.Logf("behind a burst of %d: %s", n, time.Since(began)) // as long as it takes to park what came before

	eventually(t, "all others wait in tickets", func() bool { return d.Parked("a") == n-16 })
	require.Zero(t, r.unparked(t, d))
	began = time.Now()
	r.start(t, "c", "c_new", nil)
	eventually(t, "the new run", func() bool { return g.ran("c_new") == 1 })
	t.Logf("with a backlog of %d: %s", n, time.Since(began))
	require.Less(t, time.Since(began), time.Second)
	require.Equal(t, 18, g.distinct())
	depth, err := d.Depth(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 18, depth.HandedOut, "a ticket is not handed out")
	require.Equal(t, n-16, depth.Parked)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(d.Collectors()...)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP waybill_dispatcher_waiting_runs Runs of all dispatchers that wait outside the queue, by reason.
# TYPE waybill_dispatcher_waiting_runs gauge
waybill_dispatcher_waiting_runs{reason="capacity"} %d
waybill_dispatcher_waiting_runs{reason="concurrency"} 0
waybill_dispatcher_waiting_runs{reason="rate"} 0
`, n-16)), "waybill_dispatcher_waiting_runs"))

	close(release)
	eventually(t, "the backlog is worked off", func() bool { return d.Parked("a") == 0 })
	eventually(t, "every run was executed", func() bool { return g.distinct() == n+2 })
	for _, id := range all {
		require.Equal(t, 1, g.ran(id), id)
	}
}

// The process that parks a run dies before it acknowledges the delivery.
func TestScheduler_CrashBetweenTicketAndAcknowledgementLosesNothing(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	log := r.log.(*memory.Log)
	q := &lossy{Queue: log, left: 1}
	r.queue = func(*testing.T) runlog.Queue { return q }
	release := make(chan struct{})
	d := r.dispatcher(t, queue.Config{Size: 1}, g.hold(release))
	r.start(t, "a", "busy", nil)
	eventually(t, "the slot is taken", func() bool { return g.ran("busy") == 1 })
	r.start(t, "a", "parked", nil)
	eventually(t, "the ticket is there", func() bool { return d.Parked("a") == 1 })
	q.mu.Lock()
	require.Zero(t, q.left, "and its delivery is not acknowledged")
	q.mu.Unlock()
	log.Expire() // hands out both deliveries again
	eventually(t, "acknowledged the second time", func() bool { _, held := log.Backlog(); return held == 0 })
	close(release)
	eventually(t, "executed", func() bool { return g.ran("parked") >= 1 && d.Parked("a") == 0 })
}

func TestScheduler_HandsBackAndKeepsRunsOfTickets(t *testing.T) {
	t.Parallel()
	r := inMemory()
	release, tries := make(chan struct{}), make(chan runlog.Delivery, 8)
	d := r.dispatcher(t, queue.Config{Size: 1, RetryDelay: 10 * time.Millisecond}, func(ctx context.Context, d runlog.Delivery) {
		if d.Frame().Run.RunID == "busy" {
			<-release
			_ = d.Ack()
			return
		}
		if err := d.Extend(); err != nil {
			panic(err)
		}
		if tries <- d; len(tries) < 3 {
			_ = d.Retry()
			return
		}
		_ = d.Ack()
	})
	r.start(t, "a", "busy", nil)
	r.start(t, "a", "parked", nil)
	eventually(t, "it waits", func() bool { return d.Parked("a") == 1 })
	close(release)
	eventually(t, "three tries", func() bool { return len(tries) == 3 })
	got := <-tries
	require.True(t, got.Redelivered(), "the run is read from its log")
	require.Equal(t, "parked", got.Frame().Run.RunID)
	require.EqualValues(t, 2, got.Frame().Pos)
	eventually(t, "the ticket is gone", func() bool {
		_, err := r.tickets.Get(t.Context(), "ready.a.parked.2")
		return err != nil
	})
}

// The ticket of an execution that does not end its delivery is released.
func TestScheduler_HandsBackATicketThatWasLeftOpen(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	release := make(chan struct{})
	d := r.dispatcher(t, queue.Config{Size: 1, RetryDelay: time.Millisecond}, func(_ context.Context, d runlog.Delivery) {
		defer g.enter(d.Frame())()
		id := d.Frame().Run.RunID
		if id == "busy" {
			<-release
		}
		if id == "busy" || g.ran(id) > 1 {
			_ = d.Ack()
		}
	})
	r.start(t, "a", "busy", nil)
	r.start(t, "a", "open", nil)
	eventually(t, "it waits", func() bool { return d.Parked("a") == 1 })
	close(release)
	eventually(t, "executed again", func() bool { return g.ran("open") == 2 })
}

// A dispatcher that stops leaves its waiting runs, and hands back those it executes.
func TestScheduler_AnotherDispatcherGoesOnAfterAStop(t *testing.T) {
	t.Parallel()
	r, g := inNATS(t), newGauge()
	never := make(chan struct{})
	first := r.dispatcher(t, queue.Config{Size: 2, RetryDelay: 10 * time.Millisecond}, g.hold(never))
	for _, id := range ids("a", 20) {
		r.start(t, "a", id, nil)
	}
	eventually(t, "the others wait", func() bool { return first.Parked("a") == 18 })
	first.stop()
	second := newGauge()
	d := r.dispatcher(t, queue.Config{Size: 2}, second.brief(0))
	eventually(t, "all are executed", func() bool { return second.distinct() == 20 })
	eventually(t, "nothing is left", func() bool {
		depth, err := d.Depth(t.Context())
		return err == nil && depth.Waiting+depth.InDelivery+depth.Limited == 0
	})
}

// A dispatcher that drains takes no runs, and another one gets what it had not begun at once; what it
// executes goes on.
func TestScheduler_DrainReleasesWhatIsNotBegun(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	release := make(chan struct{})
	first := r.dispatcher(t, queue.Config{Size: 1}, g.hold(release))
	r.start(t, "a", "busy", nil)
	eventually(t, "the slot is taken", func() bool { return g.ran("busy") == 1 })
	for _, id := range ids("a", 5) {
		r.start(t, "a", id, nil)
	}
	eventually(t, "the others wait", func() bool { return first.Parked("a") == 5 })
	first.Drain()
	second := newGauge()
	r.dispatcher(t, queue.Config{Size: 1}, second.brief(0))
	eventually(t, "the other dispatcher executes them", func() bool { return second.distinct() == 5 })
	require.Zero(t, second.ran("busy"))
	close(release)
	eventually(t, "the run that went on has ended", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.now["a"] == 0
	})
	require.Equal(t, 1, g.distinct(), "the first took no more")
}

// Two saturated dispatchers share tickets: none is executed twice.
func TestScheduler_TwoSaturatedDispatchersExecuteEveryRunOnce(t *testing.T) {
	t.Parallel()
	r, g := inNATS(t), newGauge()
	one := r.dispatcher(t, queue.Config{Size: 4, MaxLag: time.Millisecond}, g.brief(4*time.Millisecond))
	two := r.dispatcher(t, queue.Config{Size: 4, MaxLag: time.Millisecond}, g.brief(4*time.Millisecond))
	all := append(ids("a", 150), ids("b", 150)...)
	for _, id := range all {
		r.start(t, id[:1], id, nil)
	}
	eventually(t, "all are executed", func() bool { return g.distinct() == len(all) })
	for _, d := range []*dispatcher{one, two} {
		eventually(t, "nothing is left", func() bool {
			depth, err := d.Depth(t.Context())
			return err == nil && depth.Waiting+depth.InDelivery+depth.Limited == 0
		})
	}
	for _, id := range all {
		require.Equal(t, 1, g.ran(id), id)
	}
}

// A dispatcher without a free slot leaves runs to one that has some.
func TestScheduler_LeavesRunsToADispatcherWithRoom(t *testing.T) {
	t.Parallel()
	r, g := inNATS(t), newGauge()
	never := make(chan struct{})
	busy := r.dispatcher(t, queue.Config{Size: 1}, g.hold(never))
	r.start(t, "a", "busy", nil)
	eventually(t, "the slot is taken", func() bool { return g.ran("busy") == 1 })
	other := newGauge()
	r.dispatcher(t, queue.Config{Size: 64}, other.hold(never))
	for _, id := range ids("a", 20) {
		r.start(t, "a", id, nil)
	}
	eventually(t, "the other executes them", func() bool { return other.distinct() == 20 })
	require.Zero(t, busy.Parked("a"))
	require.Equal(t, 1, g.distinct())
}
