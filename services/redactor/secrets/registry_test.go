package secrets_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/redactor/redact"
	"waybill.dev/waybill/services/redactor/secrets"
)

func secret(id, value string) redact.Secret { return redact.Secret{ID: id, Value: redact.Value(value)} }

func registry(t *testing.T, limits secrets.Limits, host ...redact.Secret) *secrets.Registry {
	t.Helper()
	r, err := secrets.New(host, limits, nil)
	require.NoError(t, err)
	return r
}

func shown(r *secrets.Registry, at secrets.Scope, text string) string {
	out, _ := r.Scrubber(at).Text(text)
	return out
}

const everything = "host-value tenant-value run-value-1 run-value-2"

func TestScrubber_MergesScopesAndKeepsThemApart(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	acme, run1, run2 := secrets.Scope{Tenant: "acme"}, secrets.Scope{Tenant: "acme", Run: "1"}, secrets.Scope{Tenant: "acme", Run: "2"}
	require.NoError(t, r.Register(acme, []redact.Secret{secret("t", "tenant-value")}))
	require.NoError(t, r.Register(run1, []redact.Secret{secret("r1", "run-value-1")}))
	require.NoError(t, r.Register(run2, []redact.Secret{secret("r2", "run-value-2")}))

	require.Equal(t, "[REDACTED:h] [REDACTED:t] [REDACTED:r1] run-value-2", shown(r, run1, everything))
	require.Equal(t, "[REDACTED:h] [REDACTED:t] run-value-1 [REDACTED:r2]", shown(r, run2, everything))
	require.Equal(t, "[REDACTED:h] [REDACTED:t] run-value-1 run-value-2", shown(r, acme, everything))
	require.Equal(t, "[REDACTED:h] [REDACTED:t] run-value-1 run-value-2", shown(r, secrets.Scope{Tenant: "acme", Run: "3"}, everything))
	require.Equal(t, "[REDACTED:h] tenant-value run-value-1 run-value-2", shown(r, secrets.Scope{Tenant: "other", Run: "1"}, everything))
}

func TestScrubber_IsCompiledOnceAndAnewAfterAChange(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	acme, run := secrets.Scope{Tenant: "acme"}, secrets.Scope{Tenant: "acme", Run: "1"}
	require.NoError(t, r.Register(run, []redact.Secret{secret("r", "run-value-1")}))
	first := r.Scrubber(run)
	require.Same(t, first, r.Scrubber(run))
	require.NoError(t, r.Register(run, []redact.Secret{secret("r", "run-value-1")}))
	require.Same(t, first, r.Scrubber(run), "nothing new was registered")

	require.NoError(t, r.Register(acme, []redact.Secret{secret("t", "tenant-value")}))
	require.NotSame(t, first, r.Scrubber(run), "the tenant's secrets apply in its runs")
	require.Equal(t, "[REDACTED:t]", shown(r, run, "tenant-value"))
	r.Forget(acme)
	require.Equal(t, "tenant-value", shown(r, run, "tenant-value"))
}

func TestScrubber_IsSharedByRunsWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	a, b := secrets.Scope{Tenant: "acme", Run: "a"}, secrets.Scope{Tenant: "acme", Run: "b"}
	require.NoError(t, r.Register(a, nil))
	require.Same(t, r.Scrubber(a), r.Scrubber(b))
	require.Same(t, r.Scrubber(a), r.Scrubber(secrets.Scope{Tenant: "other"}))
}

func TestRegister_KeepsTheOldValueOfARotatedSecret(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	require.NoError(t, r.Register(at, []redact.Secret{secret("k", "value-of-monday")}))
	require.NoError(t, r.Register(at, []redact.Secret{secret("k", "value-of-tuesday")}))
	require.Equal(t, "[REDACTED:k] [REDACTED:k]", shown(r, at, "value-of-monday value-of-tuesday"))
}

func TestForget_DropsTheRunOnly(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	require.NoError(t, r.Register(at, []redact.Secret{secret("r1", "run-value-1")}))
	require.True(t, r.Known(at))
	r.Forget(at)
	r.Forget(at)
	require.False(t, r.Known(at))
	require.Zero(t, r.Len())
	require.Equal(t, "[REDACTED:h] tenant-value run-value-1 run-value-2", shown(r, at, everything))
}

func TestRegister_RefusesInsteadOfEvicting(t *testing.T) {
	t.Parallel()
	limits := secrets.Limits{Scopes: 2, Secrets: 2, ValueBytes: 20, ScopeBytes: 30}
	r := registry(t, limits)
	run := func(id string) secrets.Scope { return secrets.Scope{Tenant: "acme", Run: id} }
	require.NoError(t, r.Register(run("1"), []redact.Secret{secret("a", "value-aaaa")}))
	require.NoError(t, r.Register(run("2"), nil))
	require.Equal(t, fault.RateLimited, fault.CodeOf(r.Register(run("3"), nil)), "scopes")

	tests := map[string]struct {
		add  []redact.Secret
		code fault.Code
	}{
		"too many":       {[]redact.Secret{secret("b", "value-bbbb"), secret("c", "value-cccc")}, fault.RateLimited},
		"too much":       {[]redact.Secret{secret("b", strings.Repeat("b", 20)), secret("b", strings.Repeat("c", 20))}, fault.RateLimited},
		"one too long":   {[]redact.Secret{secret("b", strings.Repeat("b", 21))}, fault.ValidationError},
		"one id unfit":   {[]redact.Secret{secret("b", "value-bbbb"), secret("", "value-cccc")}, fault.ValidationError},
		"same one again": {[]redact.Secret{secret("a", "value-aaaa")}, ""},
	}
	for name, tc := range tests {
		require.Equal(t, tc.code, fault.CodeOf(r.Register(run("1"), tc.add)), name)
		require.Equal(t, "value-bbbb", shown(r, run("1"), "value-bbbb"), "all or none")
	}
	require.Equal(t, "[REDACTED:a]", shown(r, run("1"), "value-aaaa"))

	r.Forget(run("2"))
	require.NoError(t, r.Register(run("3"), nil))
	require.Equal(t, fault.ValidationError, fault.CodeOf(r.Register(secrets.Scope{Run: "x"}, nil)))
}

func TestNew_RefusesUnusableHostSecrets(t *testing.T) {
	t.Parallel()
	_, err := secrets.New([]redact.Secret{secret("", "x")}, secrets.DefaultLimits, nil)
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

func TestScrubber_NarrowerIDWinsForASharedValue(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("host-id", "shared-value"))
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	require.NoError(t, r.Register(at, []redact.Secret{secret("run-id", "shared-value")}))
	require.Equal(t, "[REDACTED:run-id]", shown(r, at, "shared-value"))
}

func TestRegistry_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			at := secrets.Scope{Tenant: "acme", Run: fmt.Sprint(g)}
			for i := range 50 {
				if err := r.Register(at, []redact.Secret{secret(fmt.Sprint(i), fmt.Sprintf("value-%d-%d", g, i))}); err != nil {
					t.Errorf("register: %v", err)
				}
				if out := shown(r, at, "host-value"); out != "[REDACTED:h]" {
					t.Errorf("host secret shown: %s", out)
				}
				if i%10 == 9 {
					r.Forget(at)
					_ = r.Register(secrets.Scope{Tenant: "acme"}, []redact.Secret{secret("t", fmt.Sprintf("tenant-%d", i))})
				}
			}
		})
	}
	wg.Wait()
}
