package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// The state of a provider has its limits, its calls and how the last ones ended.
func TestStates_DescribeProviders(t *testing.T) {
	t.Parallel()
	settings, err := limit.Parse([]byte(`{"providers":{"openai":{"maxConcurrent":1,"requestsPerMinute":600}}}`), limit.Host{})
	require.NoError(t, err)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	l := limit.NewLimiter(settings, nil, func() time.Time { return now })
	of := func() map[string]limit.State {
		out := map[string]limit.State{}
		for _, s := range l.States([]string{"openai", "sample"}) {
			out[s.Provider] = s
		}
		return out
	}
	require.Equal(t, limit.State{Provider: "sample"}, of()["sample"], "a provider that was not called")
	require.Equal(t, limit.State{Provider: "openai", MaxConcurrent: 1, RequestsPerMinute: 600}, of()["openai"])

	slot, err := l.Acquire(t.Context(), limit.Call{Provider: "openai", Tenant: "acme", Model: "m"})
	require.NoError(t, err)
	require.Equal(t, 1, of()["openai"].InFlight)
	slot.Release(limit.Outcome{Tokens: 3})
	require.Equal(t, now, of()["openai"].LastSuccessAt)

	slot, err = l.Acquire(t.Context(), limit.Call{Provider: "openai", Tenant: "acme", Model: "m"})
	require.NoError(t, err)
	refusal := &provider.Error{Code: provider.CodeQuota, Status: 429, Retryable: true, Capacity: true, RetryAfter: time.Minute}
	slot.Release(limit.Outcome{Tokens: -1, Failed: refusal, Refused: refusal})
	got := of()["openai"]
	require.Equal(t, []any{0, 1, provider.CodeQuota, 429, now}, []any{got.InFlight, got.Held, got.LastErrorCode, got.LastErrorStatus, got.LastErrorAt})
	require.False(t, got.HeldUntil.Before(now.Add(time.Minute)))

	slot, err = l.Acquire(t.Context(), limit.Call{Provider: "openai", Tenant: "acme", Model: "other"})
	require.NoError(t, err)
	before := of()["openai"].LastErrorAt
	slot.Release(limit.Outcome{Tokens: -1, Aborted: true})
	require.Equal(t, before, of()["openai"].LastErrorAt, "an aborted call says nothing of the provider")
	require.Equal(t, now, of()["openai"].LastSuccessAt)
}
