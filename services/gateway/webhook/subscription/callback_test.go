package subscription_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

func TestOrigin_IsTheServerOfAURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://hooks.example/a?b#c":    "https://hooks.example",
		"HTTPS://Hooks.Example.:443":     "https://hooks.example",
		"https://hooks.example:8443/":    "https://hooks.example:8443",
		"http://hooks.example:80/":       "http://hooks.example",
		"http://hooks.example:443/":      "http://hooks.example:443",
		"https://[2606:4700::1111]:1/x":  "https://[2606:4700::1111]:1",
		"https://[2606:4700::1111]:443/": "https://[2606:4700::1111]",
		"https://8.8.8.8":                "https://8.8.8.8",
		"":                               "",
		"/x":                             "",
		"https://%zz":                    "",
	} {
		require.Equal(t, want, subscription.Origin(raw), raw)
	}
}

func TestCallback_CoversTheRunsThatNameItsServer(t *testing.T) {
	t.Parallel()
	s := subscription.NewCallback("acme", "https://hooks.example", "")
	for name, tc := range map[string]struct {
		rec  wire.RunRecord
		want bool
	}{
		"named": {wire.RunRecord{Owner: wire.Owner{Tenant: "acme"}, CallbackURL: "https://hooks.example/x"}, true},
		"another server": {
			wire.RunRecord{Owner: wire.Owner{Tenant: "acme"}, CallbackURL: "https://hooks.example:1/x"},
			false,
		},
		"another tenant": {wire.RunRecord{Owner: wire.Owner{Tenant: "beta"}, CallbackURL: "https://hooks.example/x"}, false},
		"none":           {wire.RunRecord{Owner: wire.Owner{Tenant: "acme"}}, false},
		"a replay": {
			wire.RunRecord{
				Owner:       wire.Owner{Tenant: "acme"},
				CallbackURL: "https://hooks.example/x",
				Fork:        &wire.Fork{Mode: wire.ForkReplay},
			},
			false,
		},
	} {
		require.Equal(t, tc.want, s.Covers(&tc.rec), name)
	}
	require.Equal(t, []wire.EventType{wire.EventInterruptRequested, wire.EventApprovalEscalated}, s.Events)
}

// A callback stored before escalations existed gets their events.
func TestCallback_GetsEscalationsOfLaterVersions(t *testing.T) {
	t.Parallel()
	s := subscription.NewCallback("acme", "https://hooks.example", "")
	s.Events = []wire.EventType{wire.EventInterruptRequested}
	require.True(t, s.Wants([]wire.EventType{wire.EventNodeStarted, wire.EventApprovalEscalated}))
	require.False(t, s.Wants([]wire.EventType{wire.EventInterruptResolved}))
	s.Callback = false
	require.False(t, s.WantsType(wire.EventApprovalEscalated), "a webhook lists its types")
}

// Two replicas, or one that died in between, create it once.
func TestEnsure_CreatesOne(t *testing.T) {
	t.Parallel()
	bucket := memory.New()
	s := subscription.NewStore(bucket)
	sub := subscription.NewCallback("acme", "https://hooks.example", "")
	_, err := bucket.Update(t.Context(), "w.acme."+sub.ID+".state", []byte(`{"key":{"generation":5}}`), 0) // the only record
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, s.Ensure(t.Context(), sub, subscription.State{Key: subscription.Key{Generation: 6}}))
	}
	all, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, 5, all[0].State.Key.Generation)
}

// The breaker of callbacks opens for a minute, and never disables them.
func TestHealth_OfCallbacks(t *testing.T) {
	t.Parallel()
	s := subscription.NewStore(memory.New())
	sub := subscription.NewCallback("acme", "https://hooks.example", "")
	require.NoError(t, s.Ensure(t.Context(), sub, subscription.State{}))
	now := time.Unix(1_000_000, 0)
	for n := range 300 {
		e, err := s.Fail(t.Context(), "acme", sub.ID, now)
		require.NoError(t, err)
		require.LessOrEqual(t, len(e.State.Health.Failures), subscription.FailAfter, "what is kept is bounded")
		if n+1 < subscription.OpenAfter {
			continue
		}
		require.Equal(t, subscription.Open, e.State.Health.Condition(now))
		require.Equal(t, now.Add(time.Minute), e.State.Health.Admits(now))
		now = now.Add(time.Minute)
		require.Equal(t, subscription.HalfOpen, e.State.Health.Condition(now))
	}
}
