package deliver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

func lane(tenant, hook string, run int) outbox.ID {
	return outbox.ID{Tenant: tenant, Webhook: hook, RunID: fmt.Sprintf("run_%d", run)}
}

func open(limits Limits, states map[string]*subscription.Entry) *agenda {
	return newAgenda(limits, func(_, hook string) *subscription.Entry { return states[hook] })
}

func takeAll(a *agenda, now time.Time) []outbox.ID {
	var out []outbox.ID
	for id, ok := a.take(now); ok; id, ok = a.take(now) {
		out = append(out, id)
	}
	return out
}

// One webhook, or one tenant, never takes all places.
func TestAgenda_SharesThePlaces(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	a := open(Limits{Total: 6, PerTenant: 4, PerWebhook: 3}, nil)
	for i := range 50 {
		a.set(lane("acme", "one", i), now)
		a.set(lane("acme", "two", i), now)
		a.set(lane("beta", "three", i), now)
	}
	got := map[string]int{}
	taken := takeAll(a, now)
	for _, id := range taken {
		got[id.Tenant]++
		got[id.Webhook]++
	}
	require.Len(t, taken, 6)
	require.LessOrEqual(t, got["acme"], 4)
	require.LessOrEqual(t, got["beta"], 3)
	for _, hook := range []string{"one", "two", "three"} {
		require.LessOrEqual(t, got[hook], 3)
	}
	for _, id := range taken {
		a.remove(id)
		a.done(id)
	}
	require.Len(t, takeAll(a, now), 6, "places are given back")
}

func TestAgenda_WaitsForTheTimeOfEachLane(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	a := open(Limits{9, 9, 9}, nil)
	first, second := lane("acme", "one", 1), lane("acme", "one", 2)
	a.set(first, now.Add(time.Minute))
	a.set(second, now.Add(time.Hour))
	require.Empty(t, takeAll(a, now))
	require.Equal(t, now.Add(time.Minute), a.next(now))
	a.set(first, now.Add(2*time.Minute)) // somebody else tried it
	require.Empty(t, takeAll(a, now.Add(time.Minute)))
	require.Equal(t, now.Add(2*time.Minute), a.next(now))
	require.Equal(t, []outbox.ID{first}, takeAll(a, now.Add(2*time.Minute)))
	a.set(first, now) // told while it is worked on
	require.Empty(t, takeAll(a, now.Add(3*time.Minute)), "one at a time")
	a.done(first)
	require.Equal(t, []outbox.ID{first}, takeAll(a, now.Add(3*time.Minute)))
	a.remove(second)
	require.Empty(t, takeAll(a, now.Add(2*time.Hour)))
}

func TestAgenda_HeedsTheBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	e := &subscription.Entry{}
	e.State.Health = subscription.Health{InRow: subscription.OpenAfter, OpenUntil: now.Add(time.Hour)}
	a := open(Limits{9, 9, 9}, map[string]*subscription.Entry{"one": e})
	for i := range 5 {
		a.set(lane("acme", "one", i), now)
	}
	require.Empty(t, takeAll(a, now))
	require.Equal(t, now.Add(time.Hour), a.next(now))
	require.Len(t, takeAll(a, now.Add(time.Hour)), 1, "one is tried")
}

// A backoff grows, stays within a quarter of its middle, and is the same each time.
func TestPolicy_BacksOff(t *testing.T) {
	t.Parallel()
	p, id := DefaultPolicy(), lane("acme", "one", 1)
	seen := map[time.Duration]bool{}
	for failures, middle := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 5: 80 * time.Second, 11: time.Hour, 60: time.Hour, 500: time.Hour} {
		for seq := range 50 {
			d := p.backoff(id, seq, failures)
			require.Equal(t, d, p.backoff(id, seq, failures))
			require.InDelta(t, float64(middle), float64(d), float64(middle)/4+1, "%d", failures)
			seen[d] = true
		}
	}
	require.Greater(t, len(seen), 100, "what failed together does not come back together")
}

// A lane that is put away and at once there again, for what a run has told meanwhile, is
// not lost, in whichever order the outbox and the worker tell of it.
func TestAgenda_KeepsALaneThatIsThereAgain(t *testing.T) {
	t.Parallel()
	now, id := time.Unix(1000, 0), lane("acme", "one", 1)
	for name, tc := range map[string]struct {
		meanwhile func(a *agenda)
		after     func(a *agenda)
		want      int
	}{
		"nothing new":                {func(*agenda) {}, func(*agenda) {}, 0},
		"there again before its end": {func(a *agenda) { a.remove(id); a.set(id, now) }, func(*agenda) {}, 1},
		"there again after its end":  {func(a *agenda) { a.remove(id) }, func(a *agenda) { a.set(id, now) }, 1},
		"told late that it is gone":  {func(a *agenda) { a.set(id, now) }, func(a *agenda) { a.remove(id) }, 0},
		"gone, and told before":      {func(a *agenda) { a.set(id, now); a.remove(id) }, func(*agenda) {}, 0},
	} {
		a := open(Limits{Total: 1, PerTenant: 1, PerWebhook: 1}, nil)
		a.set(id, now)
		require.Len(t, takeAll(a, now), 1, name)
		tc.meanwhile(a)
		a.end(id)
		a.done(id)
		tc.after(a)
		require.Len(t, takeAll(a, now), tc.want, name)
	}
}
