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
	out, _ := scrubber(r, at).Text(text)
	return out
}

// scrubber returns the scrubber of a scope, without required registrations.
func scrubber(r *secrets.Registry, at secrets.Scope) *redact.Scrubber {
	s, err := r.Scrubber(at, secrets.Required{})
	if err != nil {
		panic(err)
	}
	return s
}

// register is Register without the digest.
func register(r *secrets.Registry, at secrets.Scope, list []redact.Secret) error {
	_, err := r.Register(at, list)
	return err
}

// known reports that all required registrations of a scope are present.
func known(r *secrets.Registry, at secrets.Scope, need secrets.Required) bool {
	_, err := r.Scrubber(at, need)
	return err == nil
}

const everything = "host-value tenant-value run-value-1 run-value-2"

func TestScrubber_MergesScopesAndKeepsThemApart(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	acme, run1, run2 := secrets.Scope{Tenant: "acme"}, secrets.Scope{Tenant: "acme", Run: "1"}, secrets.Scope{Tenant: "acme", Run: "2"}
	require.NoError(t, register(r, acme, []redact.Secret{secret("t", "tenant-value")}))
	require.NoError(t, register(r, run1, []redact.Secret{secret("r1", "run-value-1")}))
	require.NoError(t, register(r, run2, []redact.Secret{secret("r2", "run-value-2")}))

	require.Equal(t, "[REDACTED:h] [REDACTED:t] [REDACTED:r1] run-value-2", shown(r, run1, everything))
	require.Equal(t, "[REDACTED:h] [REDACTED:t] run-value-1 [REDACTED:r2]", shown(r, run2, everything))
	require.Equal(t, "[REDACTED:h] [REDACTED:t] run-value-1 run-value-2", shown(r, acme, everything))
	require.Equal(t, "[REDACTED:h] [REDACTED:t] run-value-1 run-value-2", shown(r, secrets.Scope{Tenant: "acme", Run: "3"}, everything))
	require.Equal(t, "[REDACTED:h] tenant-value run-value-1 run-value-2", shown(r, secrets.Scope{Tenant: "other", Run: "1"}, everything))
}

func TestScrubber_IsCompiledOnceAndAgainAfterAChange(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	acme, run := secrets.Scope{Tenant: "acme"}, secrets.Scope{Tenant: "acme", Run: "1"}
	require.NoError(t, register(r, run, []redact.Secret{secret("r", "run-value-1")}))
	first := scrubber(r, run)
	require.Same(t, first, scrubber(r, run))
	require.NoError(t, register(r, run, []redact.Secret{secret("r", "run-value-1")}))
	require.Same(t, first, scrubber(r, run), "nothing new was registered")

	require.NoError(t, register(r, acme, []redact.Secret{secret("t", "tenant-value")}))
	require.NotSame(t, first, scrubber(r, run), "the tenant's secrets apply in its runs")
	require.Equal(t, "[REDACTED:t]", shown(r, run, "tenant-value"))
	r.Forget(acme)
	require.Equal(t, "tenant-value", shown(r, run, "tenant-value"))
}

func TestScrubber_IsSharedByRunsWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	a, b := secrets.Scope{Tenant: "acme", Run: "a"}, secrets.Scope{Tenant: "acme", Run: "b"}
	require.NoError(t, register(r, a, nil))
	require.Same(t, scrubber(r, a), scrubber(r, b))
	require.Same(t, scrubber(r, a), scrubber(r, secrets.Scope{Tenant: "other"}))
}

// OpenWOP envelope contract §11, registry.
func TestScrubber_RefusesWhileARequiredRegistrationIsMissing(t *testing.T) {
	t.Parallel()
	acme, run := secrets.Scope{Tenant: "acme"}, secrets.Scope{Tenant: "acme", Run: "1"}
	for name, tc := range map[string]struct {
		registered []secrets.Scope
		need       secrets.Required
		missing    []string
	}{
		"nothing is needed":        {nil, secrets.Required{}, nil},
		"nothing registered":       {nil, secrets.Required{Run: true, Tenant: true}, []string{"run", "tenant"}},
		"the run alone":            {[]secrets.Scope{run}, secrets.Required{Run: true, Tenant: true}, []string{"tenant"}},
		"the tenant alone":         {[]secrets.Scope{acme}, secrets.Required{Run: true, Tenant: true}, []string{"run"}},
		"both":                     {[]secrets.Scope{run, acme}, secrets.Required{Run: true, Tenant: true}, nil},
		"the run, which is enough": {[]secrets.Scope{run}, secrets.Required{Run: true}, nil},
		"another run of the tenant": {
			[]secrets.Scope{{Tenant: "acme", Run: "2"}},
			secrets.Required{Run: true},
			[]string{"run"},
		},
		"the run of another tenant": {
			[]secrets.Scope{{Tenant: "other", Run: "1"}},
			secrets.Required{Run: true},
			[]string{"run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry(t, secrets.DefaultLimits)
			for _, at := range tc.registered {
				registration, err := r.Register(at, nil)
				require.NoError(t, err)
				tc.need.Registrations = append(tc.need.Registrations, registration)
			}
			_, err := r.Scrubber(run, tc.need)
			if tc.missing == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
			f, _ := fault.As(err)
			require.Equal(t, tc.missing, f.Details["unregistered"])
		})
	}
}

// A concurrent Forget opens no gap: a scrubber for a required registration has its secrets.
func TestScrubber_HasTheSecretsOfARunDuringForget(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	registration, err := r.Register(at, []redact.Secret{secret("k", "run-value-1")})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 2000 {
			_ = register(r, at, []redact.Secret{secret("k", "run-value-1")})
			r.Forget(at)
		}
	})
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				s, err := r.Scrubber(at, secrets.Required{Run: true, Registrations: []string{registration}})
				if err != nil {
					continue
				}
				if out, _ := s.Text("run-value-1"); out != "[REDACTED:k]" {
					t.Errorf("shown: %s", out)
					return
				}
			}
		})
	}
	wg.Wait()
}

// OpenWOP envelope contract §11, registry: with several registries, one to which a tenant
// returns has missed registrations at another one, and refuses.
func TestScrubber_RefusesRegistrationsThatItMissed(t *testing.T) {
	t.Parallel()
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	one, two := []redact.Secret{secret("k", "run-value-1")}, []redact.Secret{secret("k", "run-value-2")}
	a, b := registry(t, secrets.DefaultLimits), registry(t, secrets.DefaultLimits)
	first, err := a.Register(at, one)
	require.NoError(t, err)
	need := secrets.Required{Run: true, Registrations: []string{first}}
	require.True(t, known(a, at, need))

	require.False(t, known(b, at, need), "the run moves and must be registered again")
	again, err := b.Register(at, one)
	require.NoError(t, err)
	require.Equal(t, first, again, "every registry names the same secrets alike")
	second, err := b.Register(at, two)
	require.NoError(t, err)
	need.Registrations = append(need.Registrations, second)
	require.True(t, known(b, at, need))

	require.False(t, known(a, at, need), "it moves back to a redactor without its second secret")
	_, err = a.Register(at, two)
	require.NoError(t, err)
	require.True(t, known(a, at, need))
	require.Equal(t, "[REDACTED:k] [REDACTED:k]", shown(a, at, "run-value-1 run-value-2"))
	require.True(t, known(a, at, secrets.Required{Run: true, Registrations: []string{first}}), "a caller that requires fewer registrations is served")
}

func TestScrubber_ChecksRegistrationsItself(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	acme, run := secrets.Scope{Tenant: "acme"}, secrets.Scope{Tenant: "acme", Run: "1"}
	ofTenant, err := r.Register(acme, nil)
	require.NoError(t, err)
	ofRun, err := r.Register(run, nil)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		need secrets.Required
		ok   bool
	}{
		"both are named": {
			secrets.Required{Run: true, Tenant: true, Registrations: []string{ofRun, ofTenant}},
			true,
		},
		"the run is not named":    {secrets.Required{Run: true, Tenant: true, Registrations: []string{ofTenant}}, false},
		"the tenant is not named": {secrets.Required{Run: true, Tenant: true, Registrations: []string{ofRun}}, false},
		"nothing is named":        {secrets.Required{Run: true}, false},
		"an unknown registration": {secrets.Required{Registrations: []string{"x"}}, false},
		"named without need":      {secrets.Required{Registrations: []string{ofRun + "0"}}, false},
	} {
		require.Equal(t, tc.ok, known(r, run, tc.need), name)
	}
}

func TestRegister_DigestIsIndependentOfOrder(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	x, y := secret("a", "value-x-x"), secret("b", "value-y-y")
	seen := map[string]string{}
	for name, list := range map[string][]redact.Secret{
		"x":     {x},
		"y":     {y},
		"both":  {x, y},
		"none":  nil,
		"glued": {secret("ab", "value-x-x")},
	} {
		registration, err := r.Register(at, list)
		require.NoError(t, err)
		require.NotContains(t, seen, registration, "%s and %s", name, seen[registration])
		seen[registration] = name
		require.NotContains(t, registration, "value")
	}
	both, err := r.Register(at, []redact.Secret{y, x, y})
	require.NoError(t, err)
	require.Equal(t, "both", seen[both])
	elsewhere, err := r.Register(secrets.Scope{Tenant: "acme", Run: "2"}, []redact.Secret{x, y})
	require.NoError(t, err)
	require.NotContains(t, seen, elsewhere)
}

func TestRegister_KeepsTheOldValueOfARotatedSecret(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits)
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	require.NoError(t, register(r, at, []redact.Secret{secret("k", "value-of-monday")}))
	require.NoError(t, register(r, at, []redact.Secret{secret("k", "value-of-tuesday")}))
	require.Equal(t, "[REDACTED:k] [REDACTED:k]", shown(r, at, "value-of-monday value-of-tuesday"))
}

func TestForget_RemovesTheRunOnly(t *testing.T) {
	t.Parallel()
	r := registry(t, secrets.DefaultLimits, secret("h", "host-value"))
	at := secrets.Scope{Tenant: "acme", Run: "1"}
	registration, err := r.Register(at, []redact.Secret{secret("r1", "run-value-1")})
	require.NoError(t, err)
	need := secrets.Required{Run: true, Registrations: []string{registration}}
	require.True(t, known(r, at, need))
	r.Forget(at)
	r.Forget(at)
	require.False(t, known(r, at, need))
	require.Zero(t, r.Len())
	require.Equal(t, "[REDACTED:h] tenant-value run-value-1 run-value-2", shown(r, at, everything))
}

func TestRegister_RefusesInsteadOfEvicting(t *testing.T) {
	t.Parallel()
	limits := secrets.Limits{Scopes: 2, Secrets: 2, ValueBytes: 20, ScopeBytes: 30}
	r := registry(t, limits)
	run := func(id string) secrets.Scope { return secrets.Scope{Tenant: "acme", Run: id} }
	require.NoError(t, register(r, run("1"), []redact.Secret{secret("a", "value-aaaa")}))
	require.NoError(t, register(r, run("2"), nil))
	require.Equal(t, fault.RateLimited, fault.CodeOf(register(r, run("3"), nil)), "scopes")

	tests := map[string]struct {
		add  []redact.Secret
		code fault.Code
	}{
		"too many": {[]redact.Secret{secret("b", "value-bbbb"), secret("c", "value-cccc")}, fault.RateLimited},
		"too much": {
			[]redact.Secret{secret("b", strings.Repeat("b", 20)), secret("b", strings.Repeat("c", 20))},
			fault.RateLimited,
		},
		"one too long":   {[]redact.Secret{secret("b", strings.Repeat("b", 21))}, fault.ValidationError},
		"one id unfit":   {[]redact.Secret{secret("b", "value-bbbb"), secret("", "value-cccc")}, fault.ValidationError},
		"same one again": {[]redact.Secret{secret("a", "value-aaaa")}, ""},
	}
	for name, tc := range tests {
		require.Equal(t, tc.code, fault.CodeOf(register(r, run("1"), tc.add)), name)
		require.Equal(t, "value-bbbb", shown(r, run("1"), "value-bbbb"), "all or none")
	}
	require.Equal(t, "[REDACTED:a]", shown(r, run("1"), "value-aaaa"))

	r.Forget(run("2"))
	require.NoError(t, register(r, run("3"), nil))
	require.Equal(t, fault.ValidationError, fault.CodeOf(register(r, secrets.Scope{Run: "x"}, nil)))
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
	require.NoError(t, register(r, at, []redact.Secret{secret("run-id", "shared-value")}))
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
				if err := register(r, at, []redact.Secret{secret(fmt.Sprint(i), fmt.Sprintf("value-%d-%d", g, i))}); err != nil {
					t.Errorf("register: %v", err)
				}
				if out := shown(r, at, "host-value"); out != "[REDACTED:h]" {
					t.Errorf("host secret shown: %s", out)
				}
				if i%10 == 9 {
					r.Forget(at)
					_ = register(r, secrets.Scope{Tenant: "acme"}, []redact.Secret{secret("t", fmt.Sprintf("tenant-%d", i))})
				}
			}
		})
	}
	wg.Wait()
}
