package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// dropped is what a webhook's tenant sees of dropped events.
func (r *rig) dropped(e *subscription.Entry) subscription.Dropped {
	r.t.Helper()
	all, err := r.svc.List(r.t.Context(), e.Tenant)
	require.NoError(r.t, err)
	for _, now := range all {
		if now.ID == e.ID {
			return now.State.Dropped
		}
	}
	require.Fail(r.t, "no such webhook")
	return subscription.Dropped{}
}

// pending lists the runs with pending deliveries.
func (r *rig) pending(e *subscription.Entry) (runs []string) {
	r.t.Helper()
	lanes, err := r.svc.PendingLanes(r.t.Context(), e.Tenant, e.ID)
	require.NoError(r.t, err)
	for _, l := range lanes {
		runs = append(runs, l.RunID)
	}
	return runs
}

// A receiver that is down for long fills a bounded queue. What is dropped is counted, for its own webhook
// only, and everything that was queued is delivered.
func TestPendingRuns_AreLimitedForEachWebhook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.PendingRuns = 3
		r.to.answer = func(c call) webhook.Result {
			if strings.Contains(c.url, "/acme") {
				return webhook.Result{Reason: "status 500"}
			}
			return webhook.Result{}
		}
		r.start()
		down := r.hook("run.started", "run.completed")
		up := r.tagged("beta", nil, "run.started", "run.completed")
		began := time.Now()
		for i := range 5 {
			id := fmt.Sprintf("run_%d", i)
			r.run(id)
			r.say(id, "run.started", "run.completed")
			r.run("b"+id, func(rec *wire.RunRecord) { rec.Owner.Tenant = "beta" })
			r.say("b"+id, "run.started", "run.completed")
			r.pass(2 * time.Second)
		}
		require.Equal(t, []string{"run_0", "run_1", "run_2"}, r.pending(down))
		d := r.dropped(down)
		require.EqualValues(t, 4, d.Events, "both events of two runs")
		require.Equal(t, 6*time.Second, d.First.Sub(began))
		require.Equal(t, 8*time.Second, d.Last.Sub(began))
		require.Zero(t, r.dropped(up), "another webhook loses nothing")
		r.drained(up)
		require.Equal(t, 1, strings.Count(r.logged.String(), "too many runs with pending deliveries"), "once for all of them")

		r.say("run_0", "run.completed") // a queued run goes on
		r.settle()
		require.EqualValues(t, 4, r.dropped(down).Events)

		r.to.failing(false)
		r.pass(2 * subscription.OpenFor)
		r.drained(down)
		for _, want := range []string{"run_0/1", "run_1/0", "run_1/1", "run_2/0", "run_2/1"} {
			require.Contains(t, r.to.got(), want)
		}
		require.NotContains(t, r.to.got(), "run_3/0")
		r.run("run_9")
		r.say("run_9", "run.completed")
		r.pass(time.Second)
		require.Contains(t, r.to.got(), "run_9/0", "there is room again")
	})
}

// A burst is one batch: the limit holds within it, too.
func TestPendingRuns_AreLimitedWithinABatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.PendingRuns = 10
		stop := r.start()
		e := r.hook("run.completed")
		r.settle()
		stop()
		for i := range 100 {
			id := fmt.Sprintf("run_%03d", i)
			r.run(id)
			r.say(id, "run.completed")
		}
		r.to.failing(true)
		r.start()
		r.pass(time.Second)
		require.Len(t, r.pending(e), 10)
		require.EqualValues(t, 90, r.dropped(e).Events)
	})
}

// The next process knows the lanes of the last one before it offers further ones.
func TestPendingRuns_AreLimitedAfterARestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.PendingRuns = 2
		r.to.failing(true)
		stop := r.start()
		e := r.hook("run.completed")
		for i := range 2 {
			id := fmt.Sprintf("run_%d", i)
			r.run(id)
			r.say(id, "run.completed")
		}
		r.pass(2 * time.Second)
		stop()
		r.run("run_2")
		r.say("run_2", "run.completed")
		r.start()
		r.pass(2 * time.Second)
		require.Equal(t, []string{"run_0", "run_1"}, r.pending(e))
		require.EqualValues(t, 1, r.dropped(e).Events)
	})
}

// A deleted webhook has no lanes left that count.
func TestPendingRuns_EndWithTheirWebhook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.PendingRuns = 1
		r.to.failing(true)
		r.start()
		e := r.hook("run.completed")
		r.run("run_0")
		r.say("run_0", "run.completed")
		r.pass(2 * time.Second)
		require.NoError(t, r.svc.Unregister(t.Context(), "acme", e.ID))
		r.run("run_1")
		r.say("run_1", "run.completed")
		r.pass(2 * subscription.OpenFor)
		left, err := r.lanes.Keys(t.Context(), "lane.")
		require.NoError(t, err)
		require.Empty(t, left)
	})
}
