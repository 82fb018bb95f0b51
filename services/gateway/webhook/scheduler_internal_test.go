package webhook

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

func laneOf(tenant, hook string, run int) laneID {
	return laneID{Tenant: tenant, Webhook: hook, RunID: fmt.Sprintf("run_%d", run)}
}

func newTestScheduler(limits Limits, states map[string]*subscription.Entry) *scheduler {
	return newScheduler(limits, func(_, hook string) *subscription.Entry { return states[hook] })
}

func claimAll(s *scheduler, now time.Time) []laneID {
	var out []laneID
	for id, ok := s.claimNext(now); ok; id, ok = s.claimNext(now) {
		out = append(out, id)
	}
	return out
}

// One webhook or tenant never uses all slots.
func TestScheduler_LimitsEachWebhookAndTenant(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := newTestScheduler(Limits{Total: 6, PerTenant: 4, PerWebhook: 3}, nil)
	for i := range 50 {
		s.schedule(laneOf("acme", "one", i), now)
		s.schedule(laneOf("acme", "two", i), now)
		s.schedule(laneOf("beta", "three", i), now)
	}
	got := map[string]int{}
	taken := claimAll(s, now)
	for _, id := range taken {
		got[id.Tenant]++
		got[id.Webhook]++
	}
	require.Contains(t, []int{4, 5}, len(taken), "one is free for another tenant; the order of webhooks decides the number")
	require.LessOrEqual(t, got["acme"], 4)
	require.LessOrEqual(t, got["beta"], 3)
	for _, hook := range []string{"one", "two", "three"} {
		require.LessOrEqual(t, got[hook], 3)
	}
	for _, id := range taken {
		s.forget(id)
		s.release(id)
	}
	require.Contains(t, []int{4, 5}, len(claimAll(s, now)), "slots are released")
}

// Several tenants have many receivers that do not answer: another one finds a free slot.
func TestScheduler_LeavesSlotsToOtherTenants(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := newTestScheduler(DefaultPolicy().Limits, nil)
	for tenant := range 7 {
		for hook := range 10 {
			for run := range 10 {
				s.schedule(laneOf(fmt.Sprint("t", tenant), fmt.Sprint("h", hook), run), now)
			}
		}
		claimAll(s, now)
		require.Less(t, len(s.busy), s.limits.Total, "%d tenants", tenant+1)
	}
	other := laneOf("other", "one", 1)
	s.schedule(other, now)
	require.Equal(t, []laneID{other}, claimAll(s, now))
}

func TestScheduler_ClaimsALaneWhenItIsDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := newTestScheduler(Limits{9, 9, 9}, nil)
	first, second := laneOf("acme", "one", 1), laneOf("acme", "one", 2)
	s.schedule(first, now.Add(time.Minute))
	s.schedule(second, now.Add(time.Hour))
	require.Empty(t, claimAll(s, now))
	require.Equal(t, now.Add(time.Minute), s.nextWake(now))
	s.schedule(first, now.Add(2*time.Minute)) // another process failed to deliver it
	require.Empty(t, claimAll(s, now.Add(time.Minute)))
	require.Equal(t, now.Add(2*time.Minute), s.nextWake(now))
	require.Equal(t, []laneID{first}, claimAll(s, now.Add(2*time.Minute)))
	s.schedule(first, now) // reported while it is claimed
	require.Empty(t, claimAll(s, now.Add(3*time.Minute)), "a claimed lane is not claimed again")
	s.release(first)
	require.Equal(t, []laneID{first}, claimAll(s, now.Add(3*time.Minute)))
	s.forget(second)
	require.Empty(t, claimAll(s, now.Add(2*time.Hour)))
}

func TestScheduler_RespectsTheBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	e := &subscription.Entry{}
	e.State.Health = subscription.Health{InRow: subscription.OpenAfter, OpenUntil: now.Add(time.Hour)}
	s := newTestScheduler(Limits{9, 9, 9}, map[string]*subscription.Entry{"one": e})
	for i := range 5 {
		s.schedule(laneOf("acme", "one", i), now)
	}
	require.Empty(t, claimAll(s, now))
	require.Equal(t, now.Add(time.Hour), s.nextWake(now))
	require.Len(t, claimAll(s, now.Add(time.Hour)), 1, "one probe")
}

// A backoff grows, stays within a quarter of its middle, and is deterministic.
func TestBackoff_GrowsWithJitter(t *testing.T) {
	t.Parallel()
	p, id := DefaultPolicy(), laneOf("acme", "one", 1)
	seen := map[time.Duration]bool{}
	for failures, middle := range map[int]time.Duration{
		1:   5 * time.Second,
		2:   10 * time.Second,
		5:   80 * time.Second,
		11:  time.Hour,
		60:  time.Hour,
		500: time.Hour,
	} {
		for seq := range 50 {
			d := p.backoff(id, seq, failures)
			require.Equal(t, d, p.backoff(id, seq, failures))
			require.InDelta(t, float64(middle), float64(d), float64(middle)/4+1, "%d", failures)
			seen[d] = true
		}
	}
	require.Greater(t, len(seen), 100, "deliveries that failed together are not retried together")
}

// A lane that is deleted and immediately offered again is not lost, in whichever order the
// outbox and the worker report it.
func TestScheduler_KeepsALaneThatIsOfferedAgain(t *testing.T) {
	t.Parallel()
	now, id := time.Unix(1000, 0), laneOf("acme", "one", 1)
	for name, tc := range map[string]struct {
		whileClaimed func(s *scheduler)
		afterRelease func(s *scheduler)
		want         int
	}{
		"no change": {func(*scheduler) {}, func(*scheduler) {}, 0},
		"offered again before the worker ends": {
			func(s *scheduler) { s.forget(id); s.schedule(id, now) },
			func(*scheduler) {},
			1,
		},
		"offered again after the worker ends": {
			func(s *scheduler) { s.forget(id) },
			func(s *scheduler) { s.schedule(id, now) },
			1,
		},
		"late report of the deletion": {
			func(s *scheduler) { s.schedule(id, now) },
			func(s *scheduler) { s.forget(id) },
			0,
		},
		"report of the deletion before the worker ends": {
			func(s *scheduler) { s.schedule(id, now); s.forget(id) },
			func(*scheduler) {},
			0,
		},
	} {
		s := newTestScheduler(Limits{Total: 1, PerTenant: 1, PerWebhook: 1}, nil)
		s.schedule(id, now)
		require.Len(t, claimAll(s, now), 1, name)
		tc.whileClaimed(s)
		s.forgetUnlessChanged(id)
		s.release(id)
		tc.afterRelease(s)
		require.Len(t, claimAll(s, now), tc.want, name)
	}
}

// A delivery of no lane takes one of the same slots.
func TestScheduler_CountsDirectDeliveries(t *testing.T) {
	t.Parallel()
	s := newScheduler(Limits{Total: 3, PerTenant: 2, PerWebhook: 1}, func(string, string) *subscription.Entry { return nil })
	a, b, c := hookID{tenant: "acme", webhook: "a"}, hookID{tenant: "acme", webhook: "b"}, hookID{tenant: "beta", webhook: "c"}
	require.True(t, s.enter(a))
	require.False(t, s.enter(a), "one for each webhook")
	s.leave(a)
	require.True(t, s.enter(a))
	require.True(t, s.enter(c))
	require.False(t, s.enter(b), "a tenant has no more than are free")
	s.leave(c)
	s.leave(a)
	require.Zero(t, s.direct)
	require.Empty(t, s.busyByHook)
	require.Empty(t, s.busyByTenant)
}
