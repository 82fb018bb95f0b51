package webhook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// An event that was given up can be sent once more: the same message, and only that event.
func TestRedeliver_SendsAFailedEventOnceMore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.MaxAttempts = 2
		r.start()
		e := r.hook(started, completed)
		r.to.failing(true)
		r.run("run_1")
		r.say("run_1", started)
		r.pass(time.Minute)
		r.to.failing(false)
		r.say("run_1", completed)
		r.pass(2 * time.Hour)
		require.Equal(t, []string{"run_1/0", "run_1/0", "run_1/1"}, r.to.got())
		again := func(tenant, run string, sequence int) (webhook.Result, error) {
			return r.svc.Redeliver(r.t.Context(), tenant, e.ID, run, sequence)
		}
		for _, none := range []struct {
			run      string
			sequence int
		}{{"run_1", 1}, {"run_1", 7}, {"run_2", 0}} {
			_, err := again("acme", none.run, none.sequence)
			require.ErrorIs(t, err, webhook.ErrNoDeadLetter, "%v did not fail", none)
		}
		_, err := again("beta", "run_1", 0)
		require.ErrorIs(t, err, subscription.ErrNotFound, "another tenant's webhook")
		require.Len(t, r.to.got(), 3)

		r.to.failing(true)
		res, err := again("acme", "run_1", 0)
		require.NoError(t, err)
		require.Equal(t, "status 500", res.Reason)
		letters, err := r.svc.DeadLetters(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Len(t, letters, 1)
		require.Equal(t, 3, letters[0].Attempts, "a failed attempt is recorded")

		r.to.failing(false)
		res, err = again("acme", "run_1", 0)
		require.NoError(t, err)
		require.Empty(t, res.Reason)
		calls := r.to.all()
		first, last := calls[0], calls[len(calls)-1]
		require.Equal(t, string(first.body), string(last.body))
		require.Equal(t, first.head("webhook-id"), last.head("webhook-id"), "the receiver can tell that it is the same")
		letters, err = r.svc.DeadLetters(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Empty(t, letters)
		_, err = again("acme", "run_1", 0)
		require.ErrorIs(t, err, webhook.ErrNoDeadLetter, "it is delivered")
		r.drained(e)
	})
}

// A webhook that failed too often is not sent anything, until one event is accepted again.
func TestRedeliver_RevivesAFailedWebhook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.MaxAttempts = 1
		r.start()
		e := r.hook(started)
		r.to.failing(true)
		r.run("run_1")
		r.say("run_1", started)
		r.pass(time.Minute)
		require.NotEmpty(t, r.to.got())
		r.to.failing(false)
		_, err := r.svc.Redeliver(r.t.Context(), "acme", e.ID, "run_1", 0)
		require.NoError(t, err)
		require.Equal(t, subscription.Active, r.status(e))
		r.run("run_2")
		r.say("run_2", started)
		r.pass(time.Minute)
		require.Contains(t, r.to.got(), "run_2/0")
		r.drained(e)
	})
}
