package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// waitOf waits until a scheduler explains why a run of tenant a waits, and returns that.
func waitOf(t *testing.T, d *dispatcher, id string, reason queue.Reason) (got queue.Wait) {
	t.Helper()
	eventually(t, id+" waits for "+string(reason), func() bool {
		all, err := d.Waits(t.Context(), "a", []string{"other", id})
		require.NoError(t, err)
		require.NotContains(t, all, "other")
		var ok bool
		got, ok = all[id]
		return ok && got.Reason == reason
	})
	return got
}

func TestWaits_NamesTheLimitOnEveryDispatcher(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	r.tenants = map[string]queue.Tenant{"b": {Concurrency: 1}}
	release := make(chan struct{})
	first := r.dispatcher(t, queue.Config{Size: 16}, g.hold(release))
	began := time.Now()
	one := &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 1, Key: "digest"}}
	r.start(t, "a", "holder", one)
	eventually(t, "the permit is taken", func() bool { return g.ran("holder") == 1 })
	r.start(t, "a", "limited", one)
	hourly := &wire.Schedule{Rate: &wire.RateLimit{Limit: 1, PeriodMs: time.Hour.Milliseconds()}}
	r.start(t, "a", "charged", hourly)
	eventually(t, "the start is counted", func() bool { return g.ran("charged") == 1 })
	r.start(t, "a", "rated", hourly)
	r.start(t, "b", "b_holder", nil)
	eventually(t, "the tenant's permit is taken", func() bool { return g.ran("b_holder") == 1 })
	r.start(t, "b", "b_limited", nil)

	// A dispatcher that starts now, as after a crash of the other, knows the same.
	second := r.dispatcher(t, queue.Config{Size: 16}, g.hold(release))
	for name, d := range map[string]*dispatcher{"first": first, "second": second} {
		w := waitOf(t, d, "limited", queue.Concurrency)
		require.Equal(t, queue.Wait{
			Reason: queue.Concurrency,
			Scope:  queue.ScopeWorkflow,
			Limit:  1,
			Keyed:  true,
			Since:  w.Since,
		}, w, name)
		require.WithinRange(t, w.Since, began.Add(-time.Second), time.Now())

		w = waitOf(t, d, "rated", queue.Rate)
		require.Equal(t, queue.Wait{
			Reason: queue.Rate,
			Scope:  queue.ScopeWorkflow,
			Limit:  1,
			Period: time.Hour,
			Since:  w.Since,
			Until:  w.Until,
		}, w, name)
		require.WithinDuration(t, began.Add(time.Hour), w.Until, time.Minute)

		eventually(t, "the tenant's limit", func() bool {
			all, err := d.Waits(t.Context(), "b", []string{"b_limited", "b_holder"})
			require.NoError(t, err)
			require.NotContains(t, all, "b_holder", "it is executed")
			return all["b_limited"].Scope == queue.ScopeTenant && all["b_limited"].Limit == 1
		})
		others, err := d.Waits(t.Context(), "b", []string{"limited", "rated"})
		require.NoError(t, err)
		require.Empty(t, others, "runs of another tenant")
	}
	close(release)
	eventually(t, "it waits no longer", func() bool {
		all, err := second.Waits(t.Context(), "a", []string{"limited"})
		return err == nil && len(all) == 0 && g.ran("limited") == 1
	})
}

func TestWaits_NamesTheSlotsAndWhenAFailedTryIsRepeated(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	release := make(chan struct{})
	d := r.dispatcher(t, queue.Config{Size: 1, RetryDelay: time.Hour}, func(_ context.Context, d runlog.Delivery) {
		defer g.enter(d.Frame())()
		if d.Frame().Run.RunID == "busy" {
			<-release
			_ = d.Ack()
			return
		}
		_ = d.Retry()
	})
	r.start(t, "a", "busy", nil)
	eventually(t, "the slot is taken", func() bool { return g.ran("busy") == 1 })
	r.start(t, "a", "parked", nil)
	w := waitOf(t, d, "parked", queue.Capacity)
	require.Equal(t, queue.Wait{Reason: queue.Capacity, Scope: queue.ScopeDispatcher, Limit: 1, Since: w.Since}, w)
	close(release)
	again := waitOf(t, d, "parked", queue.Retry)
	require.Equal(t, w.Since, again.Since, "since it began to wait")
	require.WithinDuration(t, time.Now().Add(time.Hour), again.Until, time.Minute)
}
