package webhook_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	started   = wire.EventRunStarted
	logged    = wire.EventLogAppended
	completed = wire.EventRunCompleted
)

// OpenWOP host contract §10.5: the headers and the body of a delivery.
func TestDelivery_HasTheContractsFormat(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.hook(completed)
		r.run("run_1", func(rec *wire.RunRecord) { rec.Owner.Workspace = "ws" })
		r.say("run_1", started, logged, completed)
		r.settle()
		calls := r.to.all()
		require.Len(t, calls, 1)
		c := calls[0]
		require.Equal(t, "https://hooks.example/acme?token=url-secret", c.url)

		frames, err := r.log.Run(r.t.Context(), runOf("run_1"))
		require.NoError(t, err)
		docs, err := wire.SplitArray(frames[1].Body)
		require.NoError(t, err)
		require.Equal(t, `{"runId":"run_1","workspaceId":"ws","type":"run.completed","sequence":2,"event":`+string(docs[2])+`}`, string(c.body), "the event's own bytes")

		stamp := strconv.FormatInt(c.at.Unix(), 10)
		require.Equal(t, map[string][]string{
			"Content-Type":                  {"application/json"},
			"User-Agent":                    {"openwop-webhook-dispatcher/" + wireVersion},
			"X-openwop-Webhook-Id":          {e.ID},
			"X-openwop-Event-Type":          {"run.completed"},
			"X-openwop-Timestamp":           {stamp},
			"X-openwop-Signature":           {webhook.Sign(r.svc.Secret("acme", e.ID, 1), c.at.Unix(), c.body)},
			"X-openwop-Signature-Algorithm": {"v1"},
			"webhook-id":                    {webhook.MessageID(e.ID, "run_1", 2)},
			"webhook-timestamp":             {stamp},
			"webhook-signature":             {r.standard(c, e, 1)},
			"Traceparent":                   {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		}, map[string][]string(c.header))
		r.drained(e)
	})
}

// OpenWOP host contract §10.5, selection; §7.2: events of a replay are not delivered.
func TestSelection(t *testing.T) {
	t.Parallel()
	fork := func(mode wire.ForkMode) func(*wire.RunRecord) {
		return func(rec *wire.RunRecord) { rec.Fork = &wire.Fork{SourceRunID: "run_0", Mode: mode} }
	}
	for name, tc := range map[string]struct {
		tags   []string
		change func(*wire.RunRecord)
		types  []wire.EventType
		want   []string
	}{
		"a subscribed type":  {nil, nil, []wire.EventType{started, logged, completed}, []string{"run_1/0", "run_1/2"}},
		"no subscribed type": {nil, nil, []wire.EventType{logged}, []string{}},
		"a tag in common":    {[]string{"a", "b"}, tag("b", "c"), []wire.EventType{started}, []string{"run_1/0"}},
		"no tag in common":   {[]string{"a", "b"}, tag("c"), []wire.EventType{started}, []string{}},
		"no tags at the run": {[]string{"a"}, nil, []wire.EventType{started}, []string{}},
		"no tags asked for":  {nil, tag("c"), []wire.EventType{started}, []string{"run_1/0"}},
		"another tenant's run": {
			nil,
			func(rec *wire.RunRecord) { rec.Owner.Tenant = "beta" },
			[]wire.EventType{started},
			[]string{},
		},
		"a fork that replays":  {nil, fork(wire.ForkReplay), []wire.EventType{started, completed}, []string{}},
		"a fork that branches": {nil, fork(wire.ForkBranch), []wire.EventType{started}, []string{"run_1/0"}},
		"a replay with the tag": {
			[]string{"a"},
			both(tag("a"), fork(wire.ForkReplay)),
			[]wire.EventType{started},
			[]string{},
		},
		"an opened run's event": {
			nil,
			func(rec *wire.RunRecord) { rec.Opened = true },
			[]wire.EventType{completed},
			[]string{"run_1/0"},
		},
		"the same type repeated": {
			nil, nil,
			[]wire.EventType{started, started, completed},
			[]string{"run_1/0", "run_1/1", "run_1/2"},
		},
		"a child of another run": {
			nil,
			func(rec *wire.RunRecord) { rec.Parent = &wire.Parent{RunID: "run_0"} },
			[]wire.EventType{started},
			[]string{"run_1/0"},
		},
		"an event of no type set": {nil, nil, []wire.EventType{"acme.own"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.start()
				e := r.tagged("acme", tc.tags, started, completed)
				if tc.change == nil {
					tc.change = func(*wire.RunRecord) {}
				}
				r.run("run_1", tc.change)
				r.say("run_1", tc.types...)
				r.settle()
				require.Equal(t, tc.want, r.to.got())
				r.drained(e)
			})
		})
	}
}

func tag(tags ...string) func(*wire.RunRecord) { return func(rec *wire.RunRecord) { rec.Tags = tags } }

func both(a, b func(*wire.RunRecord)) func(*wire.RunRecord) {
	return func(rec *wire.RunRecord) { a(rec); b(rec) }
}

func TestSelection_BeginsAtTheRegistration(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.run("run_1", tag("a"))
		r.say("run_1", started)
		e := r.tagged("acme", []string{"a"}, started, logged)
		r.say("run_1", logged)
		r.settle()
		require.Equal(t, []string{"run_1/1"}, r.to.got(), "also of a run that had begun before")
		require.NoError(t, r.svc.Unregister(r.t.Context(), "acme", e.ID))
		r.settle()
		r.say("run_1", logged)
		r.settle()
		require.Len(t, r.to.got(), 1, "nothing after it was deleted")
	})
}

// OpenWOP host contract §10.5, durable mode: the same body and identity, the timestamp
// and the signature renewed; the run's later events wait, other runs do not.
func TestRetry_DelaysItsOwnRunOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.hook(started, logged)
		failures := 2
		r.to.answer = func(c call) webhook.Result {
			if c.run == "run_1" && c.seq == 0 && failures > 0 {
				failures--
				return webhook.Result{Reason: "status 503"}
			}
			return webhook.Result{}
		}
		r.run("run_1")
		r.say("run_1", started)
		r.say("run_1", logged)
		r.settle()
		r.run("run_2")
		r.say("run_2", started)
		r.settle()
		require.Equal(t, []string{"run_1/0", "run_2/0"}, r.to.got())
		waiting, err := r.svc.PendingLanes(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Len(t, waiting, 1)
		require.Equal(t, "status 503", waiting[0].Reason)
		require.Equal(t, 1, waiting[0].Attempts)

		r.pass(time.Minute)
		require.Equal(t, []string{"run_1/0", "run_2/0", "run_1/0", "run_1/0", "run_1/1"}, r.to.got())
		calls := r.to.all()
		first, last := calls[0], calls[3]
		require.Equal(t, first.body, last.body)
		require.Equal(t, first.head("X-openwop-Webhook-Id"), last.head("X-openwop-Webhook-Id"))
		require.NotEqual(t, first.head("X-openwop-Timestamp"), last.head("X-openwop-Timestamp"))
		require.Equal(t, first.head("webhook-id"), last.head("webhook-id"))
		require.NotEqual(t, first.head("webhook-id"), calls[4].head("webhook-id"))
		require.Equal(t, strconv.FormatInt(last.at.Unix(), 10), last.head("webhook-timestamp"))
		require.Equal(t, r.standard(last, e, 1), last.head("webhook-signature"))
		require.Equal(t, webhook.Sign(r.svc.Secret("acme", e.ID, 1), last.at.Unix(), last.body), last.head("X-openwop-Signature"))
		require.InDelta(t, 5, calls[2].at.Sub(first.at).Seconds(), 1.5)
		require.InDelta(t, 10, last.at.Sub(calls[2].at).Seconds(), 3)
		r.drained(e)
		require.Equal(t, subscription.Active, r.status(e))
	})
}

func TestRetry_HonorsRetryAfter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.hook(started)
		r.to.answer = func(call) webhook.Result { return webhook.Result{Reason: "status 429", After: 10 * time.Minute} }
		r.run("run_1")
		r.say("run_1", started)
		r.pass(9 * time.Minute)
		require.Len(t, r.to.got(), 1)
		r.to.failing(false)
		r.pass(2 * time.Minute)
		require.Len(t, r.to.got(), 2)
	})
}

// A dropped event is stored with its reason, and later events are delivered.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*webhook.Policy){
		"after too many attempts": func(p *webhook.Policy) { p.MaxAttempts = 3 },
		"after too long a time":   func(p *webhook.Policy) { p.MaxAge = 12 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				change(&r.policy)
				r.start()
				e := r.hook(started, completed)
				r.to.answer = func(c call) webhook.Result {
					if c.seq == 0 {
						return webhook.Result{Reason: "status 500"}
					}
					return webhook.Result{}
				}
				r.run("run_1")
				r.say("run_1", started, completed)
				r.pass(time.Minute)
				require.Equal(t, []string{"run_1/0", "run_1/0", "run_1/0", "run_1/1"}, r.to.got())
				letters, err := r.svc.DeadLetters(r.t.Context(), "acme", e.ID)
				require.NoError(t, err)
				require.Len(t, letters, 1)
				require.Equal(t, "run_1", letters[0].RunID)
				require.Equal(t, 0, letters[0].Sequence)
				require.Equal(t, started, letters[0].Type)
				require.Equal(t, 3, letters[0].Attempts)
				require.Equal(t, "status 500", letters[0].Reason)
				r.drained(e)
				_, err = r.svc.DeadLetters(r.t.Context(), "beta", e.ID)
				require.ErrorIs(t, err, subscription.ErrNotFound)
			})
		})
	}
}

// OpenWOP host contract §10.5, breaker: 4 failures in a row open it for an hour, then
// one delivery is tried.
func TestBreaker_OpensThenTriesOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.hook(started)
		r.to.failing(true)
		r.run("run_1")
		r.say("run_1", started)
		r.pass(2 * time.Minute)
		require.Len(t, r.to.got(), 4)
		require.Equal(t, subscription.Open, r.status(e))
		for i := range 20 {
			id := fmt.Sprintf("run_1%d", i)
			r.run(id)
			r.say(id, started)
		}
		r.pass(50 * time.Minute)
		require.Len(t, r.to.got(), 4, "nothing is sent while it is open")
		r.pass(11 * time.Minute)
		require.Len(t, r.to.got(), 5, "one is tried")
		r.to.failing(false)
		r.pass(61 * time.Minute)
		require.Equal(t, subscription.Active, r.status(e))
		require.Len(t, r.to.got(), 5+21, "a success lets all through")
		r.drained(e)
	})
}

// OpenWOP host contract §10.5, breaker: 100 failures in 7 days end it.
func TestBreaker_EndsASubscription(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.MaxAttempts, r.policy.MaxAge = 1000, 1000*time.Hour
		r.start()
		e := r.hook(started, logged)
		r.to.failing(true)
		r.run("run_1")
		r.say("run_1", started)
		r.say("run_1", logged)
		r.pass(6 * 24 * time.Hour)
		require.Len(t, r.to.got(), 100)
		require.Equal(t, subscription.Failed, r.status(e))
		letters, err := r.svc.DeadLetters(r.t.Context(), "acme", e.ID)
		require.NoError(t, err)
		require.Len(t, letters, 2, "what was left is put away")
		r.say("run_1", logged)
		r.pass(24 * time.Hour)
		require.Len(t, r.to.got(), 100)
		r.drained(e)
	})
}

func TestRestart_LosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		stop := r.start()
		e := r.hook(started, logged, completed)
		r.to.failing(true)
		r.run("run_1")
		r.say("run_1", started, logged)
		r.settle()
		require.Len(t, r.to.got(), 1)
		stop()
		r.say("run_1", logged, completed) // no replica feeds
		r.run("run_2")
		r.say("run_2", started)
		r.to.failing(false)
		r.pass(2 * time.Second)
		require.Len(t, r.to.got(), 1)
		stop = r.start()
		r.settle()
		require.Equal(t, []string{"run_1/0", "run_2/0"}, r.to.got(), "the retry has its time yet")
		r.pass(10 * time.Second)
		require.Equal(t, []string{"run_1/0", "run_2/0", "run_1/0", "run_1/1", "run_1/2", "run_1/3"}, r.to.got())
		r.drained(e)
		stop()
		r.start()
		r.pass(time.Hour)
		require.Len(t, r.to.got(), 6, "and nothing again")
	})
}

func TestReplicas_ShareTheWork(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		stop := r.start()
		r.start()
		r.start()
		e := r.hook(started, logged, completed)
		want := []string{}
		for i := range 30 {
			id := fmt.Sprintf("run_%d", i)
			r.run(id)
			r.say(id, started)
			if i == 15 {
				stop() // stop the feeder
			}
			r.say(id, logged, completed)
			want = append(want, id+"/0", id+"/1", id+"/2")
		}
		r.pass(time.Minute)
		got := r.to.got()
		require.ElementsMatch(t, want, got)
		inOrder(t, got)
		r.drained(e)
	})
}

// inOrder checks that the first arrival of each sequence of a run comes in order.
func inOrder(t require.TestingT, got []string) {
	last := map[string]int{}
	for _, g := range got {
		var run string
		var seq int
		_, err := fmt.Sscanf(g, "run_%s", &run)
		require.NoError(t, err)
		for i := range run {
			if run[i] == '/' {
				seq, _ = strconv.Atoi(run[i+1:])
				run = run[:i]
				break
			}
		}
		require.LessOrEqual(t, seq, last[run], "run %s: %v", run, got)
		last[run] = max(last[run], seq+1)
	}
}

func TestRotation_SignsWithBothWhileTheyOverlap(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		e := r.hook(logged)
		r.run("run_1")
		old := r.svc.Secret("acme", e.ID, 1)
		rotated, err := r.svc.Rotate(r.t.Context(), "acme", e.ID, time.Hour)
		require.NoError(t, err)
		fresh := r.svc.Secret("acme", e.ID, rotated.State.Key.Generation)
		require.NotEqual(t, old, fresh)
		r.settle() // it is seen
		require.NotEqual(t, e.State.Key.Fingerprint, rotated.State.Key.Fingerprint)
		r.say("run_1", logged)
		r.settle()
		r.pass(time.Hour)
		r.say("run_1", logged)
		r.settle()
		calls := r.to.all()
		require.Len(t, calls, 2)
		c := calls[0]
		require.Equal(t, webhook.Sign(fresh, c.at.Unix(), c.body), c.head("X-openwop-Signature"))
		require.Equal(t, webhook.Sign(old, c.at.Unix(), c.body), c.head("Waybill-Previous-Signature"))
		require.Equal(t, r.standard(c, e, rotated.State.Key.Generation, 1), c.head("webhook-signature"))
		c = calls[1]
		require.Equal(t, r.standard(c, e, rotated.State.Key.Generation), c.head("webhook-signature"))
		require.Equal(t, webhook.Sign(fresh, c.at.Unix(), c.body), c.head("X-openwop-Signature"))
		require.NotContains(t, c.header, "Waybill-Previous-Signature")
		_, err = r.svc.Rotate(r.t.Context(), "beta", e.ID, time.Hour)
		require.ErrorIs(t, err, subscription.ErrNotFound)
	})
}

func TestSecrets_DoNotLeak(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.policy.MaxAttempts = 2
		r.start()
		e := r.hook(started)
		r.to.failing(true)
		r.run("run_1")
		r.say("run_1", started)
		r.pass(time.Minute)
		require.Contains(t, r.logged.String(), "given up")
		stored := ""
		for _, s := range []interface{ dump() string }{dumper{r.subs}, dumper{r.lanes}, dumper{r.bin}} {
			stored += s.dump()
		}
		require.Contains(t, stored, e.ID)
		for name, secret := range map[string]string{"secret": r.svc.Secret("acme", e.ID, 1), "host key": string(hostKey)} {
			require.NotContains(t, r.logged.String(), secret, name)
			require.NotContains(t, stored, secret, name)
		}
		require.NotContains(t, r.logged.String(), "url-secret")
		b, err := json.Marshal(e)
		require.NoError(t, err)
		require.NotContains(t, string(b), r.svc.Secret("acme", e.ID, 1))
	})
}

// The next attempt of a pending delivery is never in the past, and not before the breaker allows it.
func TestPending_ShowsWhenTheBreakerAllowsTheNextAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		defer r.start()()
		e := r.hook(started)
		r.to.failing(true)
		next := func() []time.Time {
			t.Helper()
			waiting, err := r.svc.PendingLanes(r.t.Context(), "acme", e.ID)
			require.NoError(t, err)
			var out []time.Time
			for _, w := range waiting {
				out = append(out, w.NextAt)
			}
			return out
		}
		r.run("run_1")
		r.say("run_1", started)
		r.settle()
		own := next()[0]
		require.InDelta(t, 5, time.Until(own).Seconds(), 1.5, "it waits for its second attempt")

		for range subscription.OpenAfter {
			r.pass(time.Minute)
		}
		require.Equal(t, subscription.Open, r.status(e))
		entries, err := r.svc.List(r.t.Context(), "acme")
		require.NoError(t, err)
		opens := entries[0].State.Health.OpenUntil
		r.run("run_2")
		r.say("run_2", started)
		r.settle()
		require.Equal(t, []time.Time{opens, opens}, next(), "the breaker is open, whatever the deliveries wait for")

		r.to.failing(false)
		r.pass(time.Until(opens) + time.Minute)
		r.drained(e)
	})
}
