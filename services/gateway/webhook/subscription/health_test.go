package subscription_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

func stored(t *testing.T) (*subscription.Store, *subscription.Secrets) {
	t.Helper()
	s := subscription.NewStore(memory.New())
	secrets, err := subscription.NewSecrets(make([]byte, 32))
	require.NoError(t, err)
	_, err = s.Create(t.Context(), subscription.Subscription{Tenant: "acme", ID: "wh_1"}, subscription.State{Key: secrets.Key("acme", "wh_1", 1)})
	require.NoError(t, err)
	return s, secrets
}

// OpenWOP host contract §10.5, breaker.
func TestHealth_OpensClosesAndEnds(t *testing.T) {
	t.Parallel()
	s, _ := stored(t)
	now := time.Unix(1_000_000, 0)
	fail := func() subscription.Health {
		e, err := s.Fail(t.Context(), "acme", "wh_1", now)
		require.NoError(t, err)
		return e.State.Health
	}
	for range 3 {
		h := fail()
		require.Equal(t, subscription.Active, h.Condition(now))
	}
	h := fail()
	require.Equal(t, subscription.Open, h.Condition(now))
	require.Equal(t, now.Add(time.Hour), h.Admits(now))
	now = now.Add(time.Hour)
	require.Equal(t, subscription.HalfOpen, h.Condition(now))

	_, err := s.Probe(t.Context(), "acme", "wh_1", now)
	require.NoError(t, err)
	_, err = s.Probe(t.Context(), "acme", "wh_1", now)
	require.ErrorIs(t, err, subscription.ErrBusy, "one at a time, on all replicas")
	h = fail()
	require.Equal(t, subscription.Open, h.Condition(now), "a failed probe opens it again")
	e, err := s.Succeed(t.Context(), "acme", "wh_1")
	require.NoError(t, err)
	require.Equal(t, subscription.Active, e.State.Health.Condition(now))
	require.Equal(t, 5, e.State.Health.Recent(now), "what failed is remembered for a week")

	now = now.Add(7*24*time.Hour + time.Hour)
	require.Zero(t, e.State.Health.Recent(now))
	for range 99 {
		h = fail()
		require.NotEqual(t, subscription.Failed, h.Condition(now))
	}
	h = fail()
	require.Equal(t, subscription.Failed, h.Condition(now))
	require.Len(t, h.Failures, 100, "older ones are forgotten")
	require.Equal(t, subscription.Failed, h.Condition(now.Add(365*24*time.Hour)))
}

func TestSecrets_DifferByTenantWebhookAndGeneration(t *testing.T) {
	t.Parallel()
	_, secrets := stored(t)
	other, err := subscription.NewSecrets([]byte("another"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range []string{
		secrets.Secret("acme", "wh_1", 1), secrets.Secret("acme", "wh_1", 2),
		secrets.Secret("acme", "wh_2", 1), secrets.Secret("beta", "wh_1", 1),
		other.Secret("acme", "wh_1", 1),
	} {
		require.Regexp(t, `^[0-9a-f]{64}$`, s)
		require.False(t, seen[s])
		seen[s] = true
	}
	sub := &subscription.Subscription{Tenant: "acme", ID: "wh_1"}
	_, err = other.Of(sub, secrets.Key("acme", "wh_1", 1))
	require.ErrorIs(t, err, subscription.ErrOtherKey)
}

func TestStore_RotatesAndDeletes(t *testing.T) {
	t.Parallel()
	s, secrets := stored(t)
	now := time.Unix(1000, 0)
	e, err := s.Rotate(t.Context(), secrets, "acme", "wh_1", now, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 2, e.State.Key.Generation)
	previous, ok := e.State.Overlap(now.Add(time.Hour - 1))
	require.True(t, ok)
	require.Equal(t, 1, previous.Generation)
	_, ok = e.State.Overlap(now.Add(time.Hour))
	require.False(t, ok)

	require.ErrorIs(t, s.Delete(t.Context(), "beta", "wh_1"), subscription.ErrNotFound)
	require.NoError(t, s.Delete(t.Context(), "acme", "wh_1"))
	require.ErrorIs(t, s.Delete(t.Context(), "acme", "wh_1"), subscription.ErrNotFound)
	all, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = s.Fail(t.Context(), "acme", "wh_1", now)
	require.ErrorIs(t, err, subscription.ErrNotFound, "a late delivery brings nothing back")
}
