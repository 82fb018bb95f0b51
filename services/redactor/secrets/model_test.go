package secrets_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/redactor/redact"
	"waybill.dev/waybill/services/redactor/secrets"
)

// model is a reference implementation of a registry without a cache.
type model struct {
	registry      *secrets.Registry
	held          map[secrets.Scope][]redact.Secret
	registrations map[secrets.Scope][]string
}

func drawScope(t *rapid.T) secrets.Scope {
	return secrets.Scope{
		Tenant: rapid.SampledFrom([]string{"acme", "globex"}).Draw(t, "tenant"),
		Run:    rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "run"),
	}
}

// After any sequence of Register and Forget, a scope redacts exactly its own secrets and
// those of the wider scopes.
func TestRegistry_BehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, err := secrets.New([]redact.Secret{secret("host", "host-value")}, secrets.DefaultLimits, nil)
		require.NoError(t, err)
		m := &model{registry: r, held: map[secrets.Scope][]redact.Secret{}, registrations: map[secrets.Scope][]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"register": m.register,
			"forget":   m.forget,
			"":         m.check,
		})
	})
}

func (m *model) register(t *rapid.T) {
	at := drawScope(t)
	var add []redact.Secret
	for range rapid.IntRange(0, 2).Draw(t, "how many") {
		n := rapid.IntRange(0, 5).Draw(t, "which")
		add = append(add, secret(fmt.Sprintf("id-%d", n), fmt.Sprintf("value-no-%d", n)))
	}
	registration, err := m.registry.Register(at, add)
	require.NoError(t, err)
	m.registrations[at] = append(m.registrations[at], registration)
	m.held[at] = append(m.held[at], add...)
}

func (m *model) forget(t *rapid.T) {
	at := drawScope(t)
	m.registry.Forget(at)
	delete(m.held, at)
	delete(m.registrations, at)
}

func (m *model) check(t *rapid.T) {
	at := drawScope(t)
	held := map[string]bool{"host": true}
	for _, s := range append(append([]redact.Secret{}, m.held[at]...), m.held[secrets.Scope{Tenant: at.Tenant}]...) {
		held[s.ID] = true
	}
	_, registered := m.held[at]
	_, tenant := m.held[secrets.Scope{Tenant: at.Tenant}]
	registrations := append(append([]string{}, m.registrations[at]...), m.registrations[secrets.Scope{Tenant: at.Tenant}]...)
	require.Equal(t, registered && at.Run != "", known(m.registry, at, secrets.Required{Run: true, Registrations: registrations}))
	require.Equal(t, tenant, known(m.registry, at, secrets.Required{Tenant: true, Registrations: registrations}))
	require.Equal(t, registered && tenant && at.Run != "", known(m.registry, at, secrets.Required{
		Run:           true,
		Tenant:        true,
		Registrations: registrations,
	}))
	require.Equal(t, len(m.held), m.registry.Len())
	for n := range 6 {
		id, value := fmt.Sprintf("id-%d", n), fmt.Sprintf("value-no-%d", n)
		want := value
		if held[id] {
			want = "[REDACTED:" + id + "]"
		}
		require.Equal(t, want, shown(m.registry, at, value))
	}
	require.Equal(t, "[REDACTED:host]", shown(m.registry, at, "host-value"))
}

func BenchmarkScrubber(b *testing.B) {
	r, err := secrets.New([]redact.Secret{secret("host", "host-value")}, secrets.DefaultLimits, nil)
	require.NoError(b, err)
	for name, at := range map[string]secrets.Scope{"host": {Tenant: "a", Run: "1"}, "run": {Tenant: "b", Run: "1"}} {
		if name == "run" {
			require.NoError(b, register(r, at, []redact.Secret{secret("r", "run-value-1")}))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				scrubber(r, at)
			}
		})
	}
}
