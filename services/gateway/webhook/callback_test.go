package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

const requested = wire.EventInterruptRequested

// asker renders questions, each time with a new token.
type asker struct {
	mu       sync.Mutex // guards the fields below
	made     int
	answered map[string]bool // by run/sequence
	broken   bool
}

func (a *asker) RenderQuestion(_ context.Context, rec *wire.RunRecord, seq int, _ json.RawMessage) (doc []byte, key string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := fmt.Sprintf("%s/%d", rec.RunID, seq)
	switch {
	case a.broken:
		return nil, "", errors.New("the read model is behind")
	case a.answered[at]:
		return nil, "", nil
	}
	a.made++
	return fmt.Appendf(nil, `{"runId":%q,"sequence":%d,"interrupt":{"interruptToken":"token-%d"}}`, rec.RunID, seq, a.made), at, nil
}

func (a *asker) set(f func(*asker)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

func (a *asker) answer(at string) {
	a.set(func(a *asker) {
		if a.answered == nil {
			a.answered = map[string]bool{}
		}
		a.answered[at] = true
	})
}

const answers = "https://answers.example/in?run=1"

func calling(url string) func(*wire.RunRecord) {
	return func(rec *wire.RunRecord) { rec.CallbackURL = url }
}

// expect registers a callback URL, and returns its subscription.
func (r *rig) expect(url string) *subscription.Entry {
	r.t.Helper()
	require.NoError(r.t, r.svc.EnsureCallback(r.t.Context(), "acme", url))
	all, err := r.svc.List(r.t.Context(), "acme")
	require.NoError(r.t, err)
	for _, e := range all {
		if e.Callback && e.URL == subscription.Origin(url) {
			return e
		}
	}
	r.t.Fatal("unexpected callback")
	return nil
}

// OpenWOP host contract §6.5, exposure: a question is sent to the run's own URL, signed like a webhook
// delivery, with a key to recognize repeats.
func TestCallback_IsSentToTheRunsURL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.expect(answers)
		require.Equal(t, "https://answers.example", e.URL)
		require.Equal(t, e, r.expect("https://ANSWERS.example:443/other"), "one for a server")
		r.run("run_1", calling(answers))
		r.run("run_2")
		r.run("run_3", calling("https://else.example/"))
		for _, id := range []string{"run_1", "run_2", "run_3"} {
			r.say(id, started, requested, logged)
		}
		r.settle()
		calls := r.to.all()
		require.Len(t, calls, 1)
		c := calls[0]
		require.Equal(t, answers, c.url)
		require.JSONEq(t, `{"runId":"run_1","sequence":1,"interrupt":{"interruptToken":"token-1"}}`, string(c.body))
		require.Equal(t, "run_1/1", c.head("Idempotency-Key"))
		require.Equal(t, e.ID, c.head("X-openwop-Webhook-Id"))
		require.Equal(t, "interrupt.requested", c.head("X-openwop-Event-Type"))
		require.Equal(t, webhook.MessageID(e.ID, "run_1", 1), c.head("webhook-id"))
		require.Equal(t, r.standard(c, e, e.State.Key.Generation), c.head("webhook-signature"))
		key := e.State.Key
		require.Equal(t, webhook.Sign(r.svc.Secret("acme", e.ID, key.Generation), c.at.Unix(), c.body), c.head("X-openwop-Signature"))
		r.drained(e)

		next, err := r.svc.Rotate(r.t.Context(), "acme", e.ID, time.Hour)
		require.NoError(t, err)
		r.settle()
		r.say("run_1", requested)
		r.settle()
		c = r.to.all()[1]
		require.Equal(t, webhook.Sign(r.svc.Secret("acme", e.ID, next.State.Key.Generation), c.at.Unix(), c.body), c.head("X-openwop-Signature"), "signed with the returned secret")
		for _, kept := range []string{
			dumper{r.subs}.dump(), dumper{r.lanes}.dump(), dumper{r.bin}.dump(), r.logged.String(),
		} {
			require.NotContains(t, kept, "token-")
		}
	})
}

// OpenWOP host contract §7.2: a replay sends no callbacks; a branch sends its own.
func TestCallback_OfForks(t *testing.T) {
	t.Parallel()
	for mode, want := range map[wire.ForkMode]int{wire.ForkReplay: 0, wire.ForkBranch: 1} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.start()
				e := r.expect(answers)
				r.run("run_1", both(calling(answers), func(rec *wire.RunRecord) { rec.Fork = &wire.Fork{SourceRunID: "run_0", Mode: mode} }))
				r.say("run_1", requested)
				r.settle()
				require.Len(t, r.to.all(), want)
				r.drained(e)
			})
		})
	}
}

// Each try has a new token. An answered question is not sent again, and its failures do not count for
// the next one.
func TestCallback_IsNotSentOnceAnswered(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.MaxAttempts = 3
		r.start()
		e := r.expect(answers)
		r.to.failing(true)
		r.run("run_1", calling(answers))
		r.say("run_1", requested, requested)
		r.pass(6 * time.Second)
		require.Equal(t, []string{"run_1/0", "run_1/0"}, r.to.got())
		first, second := r.to.all()[0], r.to.all()[1]
		require.Equal(t, first.head("Idempotency-Key"), second.head("Idempotency-Key"))
		require.NotEqual(t, first.body, second.body)
		r.ask.answer("run_1/0")
		for len(r.to.got()) < 3 {
			r.pass(time.Second)
		}
		require.Equal(t, []string{"run_1/0", "run_1/0", "run_1/1"}, r.to.got())
		left, err := r.svc.PendingLanes(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Equal(t, 1, left[0].Attempts)
		r.to.failing(false)
		r.pass(15 * time.Second)
		require.Equal(t, "run_1/1", r.to.got()[3])
		dead, err := r.svc.DeadLetters(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Empty(t, dead)
		r.drained(e)
	})
}

// OpenWOP host contract §10.6: a forbidden URL is dropped immediately, with a reason.
func TestCallback_ToAForbiddenURLIsDropped(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.expect(answers)
		r.to.answer = func(call) webhook.Result { return webhook.Result{Reason: "refused: inside", Refused: true} }
		r.run("run_1", calling(answers))
		r.say("run_1", requested)
		r.settle()
		dead, err := r.svc.DeadLetters(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Equal(t, "refused: inside", dead[0].Reason)
		require.Equal(t, 1, dead[0].Attempts)
		r.drained(e)
		require.Equal(t, subscription.Active, r.status(e), "the server has done nothing wrong")
	})
}

// A question that the host cannot read waits, and does not count as a failure of the receiver.
func TestCallback_WaitsForTheHost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.expect(answers)
		r.ask.set(func(a *asker) { a.broken = true })
		r.run("run_1", calling(answers))
		r.say("run_1", requested)
		r.pass(time.Second)
		require.Empty(t, r.to.got())
		left, err := r.svc.PendingLanes(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Equal(t, "the host cannot render the question", left[0].Reason)
		r.ask.set(func(a *asker) { a.broken = false })
		r.pass(10 * time.Second)
		require.Equal(t, []string{"run_1/0"}, r.to.got())
		require.Equal(t, subscription.Active, r.status(e))
	})
}

// A failed server does not delay other servers' questions. It is retried each minute and never
// disabled, but a question expires.
func TestCallback_ServerThatIsDown(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		down, up := r.expect("https://down.example/"), r.expect("https://up.example/")
		broken := true
		r.to.answer = func(c call) webhook.Result {
			if broken && strings.HasPrefix(c.url, "https://down.") {
				return webhook.Result{Reason: "status 500"}
			}
			return webhook.Result{}
		}
		for i := range 5 {
			id := fmt.Sprintf("run_%d", i)
			r.run(id, calling("https://down.example/"+id))
			r.say(id, requested)
		}
		r.run("run_up", calling("https://up.example/"))
		r.say("run_up", requested)
		r.settle()
		require.Contains(t, r.to.got(), "run_up/0")
		require.Equal(t, subscription.Active, r.status(up))
		r.pass(7 * 24 * time.Hour)
		require.NotEqual(t, subscription.Failed, r.status(down))
		dead, err := r.svc.DeadLetters(r.t.Context(), "acme", down.ID)
		require.NoError(t, err)
		require.Len(t, dead, 5)
		r.to.mu.Lock()
		broken = false
		r.to.mu.Unlock()
		r.run("run_late", calling("https://down.example/"))
		r.say("run_late", requested)
		r.pass(2 * time.Minute)
		require.Equal(t, "run_late/0", r.to.got()[len(r.to.got())-1])
		r.drained(down)
	})
}

// Each question is sent by one replica, even if a replica stops.
func TestCallback_ReplicasShareTheWork(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		stop := r.start()
		r.start()
		e := r.expect(answers)
		for i := range 20 {
			if i == 10 {
				stop()
			}
			id := fmt.Sprintf("run_%d", i)
			r.run(id, calling(answers))
			r.say(id, requested)
		}
		r.pass(time.Minute)
		require.Len(t, r.to.got(), 20, "each once")
		r.drained(e)
	})
}

// The host ends between a question and its delivery.
func TestCallback_SurvivesARestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		stop := r.start()
		e := r.expect(answers)
		r.run("run_1", calling(answers))
		stop()
		r.say("run_1", requested)
		require.Empty(t, r.to.got())
		r.start()
		r.pass(10 * time.Second)
		require.Equal(t, []string{"run_1/0"}, r.to.got())
		r.drained(e)
	})
}

// The number of servers in a tenant's runs is limited, separately from webhooks.
func TestExpect_IsLimited(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		for i := range webhook.DefaultPolicy().PerTenant {
			r.expect(fmt.Sprintf("https://h%d.example/x", i))
		}
		require.ErrorIs(t, r.svc.EnsureCallback(r.t.Context(), "acme", "https://more.example/"), webhook.ErrManyCallbacks)
		e := r.expect("https://h0.example/y")
		r.hook(logged)
		require.NoError(t, r.svc.EnsureCallback(r.t.Context(), "beta", "https://more.example/"))

		require.NoError(t, r.svc.Unregister(r.t.Context(), "acme", e.ID))
		r.pass(2 * time.Minute)
		again := r.expect("https://h0.example/y")
		require.Equal(t, e.ID, again.ID)
		require.NotEqual(t, e.State.Key.Fingerprint, again.State.Key.Fingerprint, "an old secret does not come back")
	})
}
