package queue_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/queue"
)

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

// limited is the schedule of a workflow of which n runs are executed at a time.
func limited(n int) *wire.Schedule {
	return &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: n}}
}

// holdersOf returns the processes that hold permits.
func (r *rig) holdersOf(t *testing.T) (out []string) {
	t.Helper()
	entries, err := kv.List(t.Context(), r.tickets, "permit.")
	require.NoError(t, err)
	for _, e := range entries {
		var h struct{ Process string }
		require.NoError(t, json.Unmarshal(e.Value, &h))
		out = append(out, h.Process)
	}
	return out
}

// soon limits the time until a freed permit is in use again.
const soon = time.Second

// A dispatcher that is killed keeps its permit until its lease is over, and no longer.
func TestScheduler_PermitOfAKilledDispatcherIsFreeWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, one, two := inMemory(), newGauge(), newGauge()
		never, release := make(chan struct{}), make(chan struct{})
		a := r.dispatcher(t, queue.Config{Size: 4}, one.hold(never))
		r.start(t, "a", "one", limited(1))
		pass(soon)
		require.Equal(t, 1, one.ran("one"))
		r.dispatcher(t, queue.Config{Size: 4}, two.hold(release))
		r.start(t, "a", "two", limited(1))
		pass(leaseTime)
		require.Equal(t, []string{a.table.Process()}, r.holdersOf(t))
		a.kill()
		pass(leaseTime - leaseTime/lease.Renewals)
		require.Zero(t, two.distinct(), "the lease may still be renewed")
		pass(leaseTime)
		require.Equal(t, 1, two.ran("two"))
		require.NotContains(t, r.holdersOf(t), a.table.Process())
		require.Zero(t, one.ran("two"))
		close(release)
		pass(soon)
		require.Empty(t, r.holdersOf(t), "no permit is left behind")
	})
}

// A ticket that a killed dispatcher had claimed is claimed by another one after the lease.
func TestScheduler_TicketOfAKilledDispatcherIsFreeWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, one, two := inMemory(), newGauge(), newGauge()
		first, never := make(chan struct{}), make(chan struct{})
		a := r.dispatcher(t, queue.Config{Size: 1}, func(ctx context.Context, d runlog.Delivery) {
			if d.Frame().Run.RunID == "busy" {
				one.hold(first)(ctx, d)
			} else {
				one.hold(never)(ctx, d)
			}
		})
		r.start(t, "a", "busy", nil)
		pass(soon)
		r.start(t, "a", "parked", nil)
		pass(soon)
		close(first)
		pass(soon)
		require.Equal(t, 1, one.ran("parked"))
		b := r.dispatcher(t, queue.Config{Size: 1}, two.brief(0))
		pass(leaseTime)
		a.kill()
		pass(leaseTime - leaseTime/lease.Renewals)
		require.Zero(t, two.distinct())
		pass(leaseTime)
		require.Equal(t, 1, two.ran("parked"))
		depth, err := b.Depth(t.Context())
		require.NoError(t, err)
		require.Zero(t, depth.Waiting+depth.InDelivery)
	})
}

// A dispatcher that ends in order gives its permits back with its lease, even if it could not delete
// them one by one.
func TestScheduler_PermitOfAReleasedLeaseIsFreeImmediately(t *testing.T) {
	t.Parallel()
	for name, cutOff := range map[string]bool{"permit deleted": false, "permit left": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, one, two := inMemory(), newGauge(), newGauge()
				never := make(chan struct{})
				a := r.dispatcher(t, queue.Config{Size: 4}, one.hold(never))
				r.start(t, "a", "one", limited(1))
				pass(soon)
				r.dispatcher(t, queue.Config{Size: 4}, two.brief(0))
				r.start(t, "a", "two", limited(1))
				pass(leaseTime)
				require.Zero(t, two.distinct())
				a.table.Drain()
				a.Drain()
				a.pool.Drain()
				a.noTickets.Store(cutOff)
				a.Lost("") // the run is released, which is the executor's part
				synctest.Wait()
				if cutOff {
					pass(soon)
					require.Zero(t, two.distinct(), "it drains, and holds its lease")
				}
				require.NoError(t, a.table.Release(t.Context()))
				pass(soon)
				require.Equal(t, 1, two.ran("two"))
				require.Empty(t, r.holdersOf(t))
			})
		})
	}
}

// A dispatcher that lost its lease takes permits under its new id, but not before the runs have ended
// that it executes under the old one: their permits are another's already.
func TestScheduler_CountsRunsOfALostLeaseUntilTheyEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, one, two := inMemory(), newGauge(), newGauge()
		late, release := make(chan struct{}), make(chan struct{})
		end := sync.OnceFunc(func() { close(late) })
		defer end()
		a := r.dispatcher(t, queue.Config{Size: 4}, func(ctx context.Context, d runlog.Delivery) {
			if d.Frame().Run.RunID == "slow" { // its effect ignores the cancellation
				defer one.enter(d.Frame())()
				<-late
				return
			}
			one.hold(release)(ctx, d)
		})
		r.start(t, "a", "slow", limited(2))
		pass(soon)
		was := a.table.Process()
		b := r.dispatcher(t, queue.Config{Size: 1}, two.hold(release))
		pass(leaseTime)
		a.noLeases.Store(true)
		pass(3 * leaseTime)
		require.Empty(t, r.holdersOf(t), "the permit of the expired lease is free")
		a.noLeases.Store(false)
		pass(leaseTime)
		require.NotEqual(t, was, a.table.Process())

		for _, id := range ids("next", 3) {
			r.start(t, "a", id, limited(2))
		}
		pass(leaseTime)
		require.Equal(t, []string{b.table.Process()}, r.holdersOf(t), "the slow run counts")
		require.Equal(t, 1, two.distinct())
		require.Equal(t, 1, one.distinct())
		end()
		pass(leaseTime)
		require.ElementsMatch(t, []string{a.table.Process(), b.table.Process()}, r.holdersOf(t))
		require.Equal(t, 2, one.distinct())
		close(release)
		pass(leaseTime)
		require.Equal(t, 4, one.distinct()+two.distinct())
		require.Empty(t, r.holdersOf(t))
		_ = r.log.(*memory.Log).Expire() // the delivery of the slow run lapses
		pass(soon)
		require.Equal(t, 2, one.ran("slow")+two.ran("slow"))
	})
}

// A run that was handed out under a lease is not executed, nor kept, after the lease was lost.
func TestScheduler_ALostLeaseFreesItsTickets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, one, two := inMemory(), newGauge(), newGauge()
		release, extended := make(chan struct{}), make(chan error, 1)
		end := sync.OnceFunc(func() { close(release) })
		defer end()
		a := r.dispatcher(t, queue.Config{Size: 1}, func(ctx context.Context, d runlog.Delivery) {
			if d.Frame().Run.RunID != "parked" {
				one.brief(soon)(ctx, d)
				return
			}
			defer one.enter(d.Frame())()
			require.NoError(t, d.Extend())
			<-ctx.Done()
			extended <- d.Extend()
			<-release
		})
		r.start(t, "a", "busy", nil)
		r.start(t, "a", "parked", nil)
		pass(2 * soon)
		require.Equal(t, 1, one.ran("parked"))
		b := r.dispatcher(t, queue.Config{Size: 1}, two.brief(0))
		pass(leaseTime)
		a.noLeases.Store(true)
		pass(3 * leaseTime)
		require.Equal(t, 1, two.ran("parked"))
		a.noLeases.Store(false)
		pass(leaseTime)
		require.Error(t, <-extended)
		end()
		pass(leaseTime)
		require.Equal(t, 1, one.ran("parked"))
		require.Equal(t, 1, two.ran("parked"))
		depth, err := b.Depth(t.Context())
		require.NoError(t, err)
		require.Zero(t, depth.Waiting+depth.InDelivery)
	})
}

// A process with the name of one that was killed is another process: it waits for the lease, unless
// it has the data directory to itself.
func TestScheduler_ARestartedProcessTakesPermitsAfterTheLease(t *testing.T) {
	t.Parallel()
	for name, sole := range map[string]bool{"among others": false, "sole": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, one, two := inMemory(), newGauge(), newGauge()
				never := make(chan struct{})
				cfg := lease.Config{Host: "dispatcher-0", Sole: sole}
				a := r.process(t, queue.Config{Size: 4}, cfg, one.hold(never))
				r.start(t, "a", "one", limited(1))
				pass(soon)
				r.start(t, "a", "two", limited(1))
				pass(leaseTime)
				a.kill()
				r.process(t, queue.Config{Size: 4}, cfg, two.brief(0))
				pass(soon)
				require.Equal(t, sole, two.ran("two") == 1)
				pass(2 * leaseTime)
				require.Equal(t, 1, two.ran("two"))
				require.Empty(t, r.holdersOf(t))
			})
		})
	}
}

// A dispatcher that starts after a crash finds permits and tickets of processes without a lease record,
// as well as permits that it cannot read.
func TestScheduler_FreesWhatUnknownProcessesHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, g := inMemory(), newGauge()
		never := make(chan struct{})
		a := r.dispatcher(t, queue.Config{Size: 4}, g.hold(never))
		r.start(t, "a", "one", limited(2))
		pass(soon)
		permits, err := kv.List(t.Context(), r.tickets, "permit.")
		require.NoError(t, err)
		require.Len(t, permits, 1)
		key := permits[0].Key
		a.kill()
		for _, value := range []string{`{"runId":"x","process":"forgotten"}`, `not JSON`} {
			other := strings.TrimRight(key, "01")
			for _, n := range []string{"0", "1"} {
				_, err := r.tickets.Put(t.Context(), other+n, []byte(value))
				require.NoError(t, err)
			}
			_, err := r.tickets.Put(t.Context(), "ready.a.x.1", []byte(`{"tenant":"a","workflowId":"wf","runId":"x","kind":"start","pos":1,"reason":"capacity","holder":"forgotten"}`))
			require.NoError(t, err)
			next := newGauge()
			b := r.dispatcher(t, queue.Config{Size: 4}, next.brief(0))
			r.start(t, "a", "two"+value[:1], limited(2))
			pass(soon)
			require.Equal(t, 1, next.ran("two"+value[:1]))
			require.Equal(t, 1, next.ran("x"))
			require.Empty(t, r.holdersOf(t))
			b.stop()
		}
	})
}
