// Package secrets is the registry of secrets: the host's apply everywhere, a tenant's in
// all its runs, a run's in that run.
//
// Secrets stay until Forget, or until the process ends. They are registered again when
// another process resumes the run (OpenWOP envelope contract §11, registry). With several
// redactors, a registry may have missed registrations of a scope. So callers name the
// registrations they need, and a registry without all of them refuses.
//
// A full registry refuses new secrets. It evicts none, since an evicted live secret would
// be shown.
package secrets

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/redactor/redact"
)

// Scope is the owner of secrets. An empty Run means the tenant.
type Scope struct{ Tenant, Run string }

// Limits limit the memory of a registry.
type Limits struct {
	// Scopes is the number of tenants and runs.
	Scopes int
	// Secrets is the number of secrets per scope.
	Secrets int
	// ValueBytes is the size of one secret.
	ValueBytes int
	// ScopeBytes is the total size of the secrets of a scope. An automaton needs about 400
	// times as much, for the encodings of each value.
	ScopeBytes int
}

// DefaultLimits suit a host with a few thousand active runs.
var DefaultLimits = Limits{Scopes: 10_000, Secrets: 64, ValueBytes: 8 << 10, ScopeBytes: 32 << 10}

// Registry has the secrets of the host, its tenants and their runs. It is safe for
// concurrent use.
type Registry struct {
	limits      Limits
	shapes      *redact.Shapes
	host        *redact.Scrubber
	hostSecrets []redact.Secret

	mu     sync.RWMutex // guards scopes and its entries, except their scrubbers
	scopes map[Scope]*entry
}

// entry has the secrets of one scope. scrubber is compiled from them and from the secrets
// of the wider scopes. It is nil before its first use, and after a change in one of these
// scopes.
type entry struct {
	secrets       []redact.Secret
	bytes         int
	registrations map[string]bool // digests of Register calls
	scrubber      atomic.Pointer[redact.Scrubber]
}

// New makes a registry with the host's own secrets. These include platform credentials,
// although the protocol does not require it. Errors: fault.ValidationError for a secret
// with an invalid id.
//
// shapes is the second layer; nil disables it.
func New(host []redact.Secret, limits Limits, shapes *redact.Shapes) (*Registry, error) {
	for _, s := range host {
		if err := s.Validate(); err != nil {
			return nil, err
		}
	}
	return &Registry{
		limits:      limits,
		shapes:      shapes,
		host:        redact.Compile(host).With(shapes),
		hostSecrets: slices.Clone(host),
		scopes:      map[Scope]*entry{},
	}, nil
}

// Register adds secrets to a scope, all or none. Earlier values stay, also under the same
// id, since an old value must not be shown either. An empty list registers the scope as
// one without secrets. It returns a digest, by which callers name the registration.
// Errors: fault.ValidationError, fault.RateLimited when the registry or scope is full.
func (r *Registry) Register(scope Scope, secrets []redact.Secret) (string, error) {
	if scope.Tenant == "" {
		return "", fault.Empty("scope.tenant")
	}
	for i, s := range secrets {
		if err := r.validateSecret(i, s); err != nil {
			return "", err
		}
	}
	registration := digest(scope, secrets)
	return registration, r.addSecrets(scope, secrets, registration)
}

func (r *Registry) addSecrets(scope Scope, secrets []redact.Secret, registration string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.scopes[scope]
	if !known {
		if len(r.scopes) >= r.limits.Scopes {
			return fault.New(fault.RateLimited, "the redactor has the secrets of %d runs and tenants, which is the limit; forget some", r.limits.Scopes)
		}
		e = &entry{}
	}
	if known && e.registrations[registration] {
		return nil // keeps the automaton
	}
	merged := e.withSecrets(secrets)
	merged.registrations[registration] = true
	if len(merged.registrations) > maxRegistrations {
		return fault.New(fault.RateLimited, "a run or tenant may have at most %d different registrations", maxRegistrations)
	}
	if len(merged.secrets) > r.limits.Secrets || merged.bytes > r.limits.ScopeBytes {
		return fault.New(fault.RateLimited, "a run or tenant may have at most %d secrets, with at most %d bytes in total", r.limits.Secrets, r.limits.ScopeBytes)
	}
	r.scopes[scope] = merged
	if known && len(merged.secrets) == len(e.secrets) {
		merged.scrubber.Store(e.scrubber.Load())
		return nil
	}
	r.invalidate(scope)
	return nil
}

// validateSecret validates a secret. Errors name its index, since an unchecked id may
// contain anything.
func (r *Registry) validateSecret(i int, s redact.Secret) error {
	if f, ok := fault.As(s.Validate()); ok {
		return fault.New(f.Code, "secrets[%d]: %s", i, f.Message)
	}
	if len(s.Value) > r.limits.ValueBytes {
		return fault.New(fault.ValidationError, "secrets[%d]: the value has more than %d bytes", i, r.limits.ValueBytes)
	}
	return nil
}

// withSecrets returns a copy of the entry with more secrets.
func (e *entry) withSecrets(more []redact.Secret) *entry {
	out := &entry{secrets: slices.Clone(e.secrets), bytes: e.bytes, registrations: maps.Clone(e.registrations)}
	if out.registrations == nil {
		out.registrations = map[string]bool{}
	}
	for _, s := range more {
		if !slices.Contains(out.secrets, s) {
			out.secrets = append(out.secrets, s)
			out.bytes += len(s.Value)
		}
	}
	return out
}

// invalidate drops the automata that contain the secrets of scope. r.mu is held.
func (r *Registry) invalidate(scope Scope) {
	if scope.Run != "" {
		return // no other automaton contains a run's secrets, and its own entry is new
	}
	for at, e := range r.scopes {
		if at.Tenant == scope.Tenant {
			e.scrubber.Store(nil)
		}
	}
}

// Forget removes the secrets of a run, or with an empty Run the secrets of a tenant. Runs
// of the tenant keep their own. Forgetting twice is no error.
func (r *Registry) Forget(scope Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.scopes[scope]; !known {
		return
	}
	delete(r.scopes, scope)
	r.invalidate(scope)
}

// Len returns the number of registered tenants and runs.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.scopes)
}

// HostScrubber returns the scrubber with the host's own secrets only.
func (r *Registry) HostScrubber() *redact.Scrubber { return r.host }

// Required are the registrations that a caller requires. All of Registrations must be
// known. With Run or Tenant, at least one of them must be a registration of the run or of
// the tenant.
type Required struct {
	Run, Tenant   bool
	Registrations []string
}

// Scrubber returns the scrubber of a scope: its own secrets, its tenant's and the host's.
// It is compiled on first use and kept until one of these changes. Errors:
// fault.ServiceUnavailable while a required registration is missing. Registrations and
// secrets are read under one lock, so a concurrent Forget opens no gap.
func (r *Registry) Scrubber(scope Scope, required Required) (*redact.Scrubber, error) {
	r.mu.RLock()
	err := r.checkRegistered(scope, required)
	_, e := r.innermost(scope)
	r.mu.RUnlock()
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return r.host, nil
	}
	if s := e.scrubber.Load(); s != nil {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkRegistered(scope, required); err != nil { // again: the scope may have changed
		return nil, err
	}
	at, e := r.innermost(scope)
	if e == nil {
		return r.host, nil
	}
	s := e.scrubber.Load()
	if s == nil {
		s = redact.Compile(r.applicableSecrets(at)).With(r.shapes)
		e.scrubber.Store(s)
	}
	return s, nil
}

// checkRegistered fails while a required registration is missing, as after a restart
// (OpenWOP envelope contract §11, registry). r.mu is held.
func (r *Registry) checkRegistered(scope Scope, required Required) error {
	var missing []string
	if i := slices.IndexFunc(required.Registrations, func(name string) bool {
		return !strings.HasPrefix(name, runPrefix) && !strings.HasPrefix(name, tenantPrefix)
	}); i >= 0 {
		return fault.New(fault.ValidationError, "scope.registrations[%d]: must be a registration that Register returned", i)
	}
	if !r.hasRegistrations(scope, required.Run, runPrefix, required.Registrations) {
		missing = append(missing, "run")
	}
	if !r.hasRegistrations(Scope{Tenant: scope.Tenant}, required.Tenant, tenantPrefix, required.Registrations) {
		missing = append(missing, "tenant")
	}
	if missing == nil {
		return nil
	}
	return fault.New(fault.ServiceUnavailable, "the secrets of the %s are not registered; register them (an empty list if there are none) and try again",
		strings.Join(missing, " and the ")).With("unregistered", missing)
}

// hasRegistrations reports that the scope has all named registrations of its kind. If
// must is set, at least one must be named. r.mu is held.
func (r *Registry) hasRegistrations(scope Scope, must bool, kind string, named []string) bool {
	e := r.scopes[scope]
	for _, name := range named {
		switch sameKind := strings.HasPrefix(name, kind); {
		case sameKind && (e == nil || !e.registrations[name]):
			return false
		case sameKind:
			must = false
		}
	}
	return !must
}

// innermost returns the innermost scope with secrets; e is nil for the host. So runs
// without secrets share the automaton of their tenant, and tenants without secrets that
// of the host. r.mu is held.
func (r *Registry) innermost(scope Scope) (at Scope, e *entry) {
	for _, at := range []Scope{scope, {Tenant: scope.Tenant}} {
		if e := r.scopes[at]; e != nil && len(e.secrets) > 0 {
			return at, e
		}
	}
	return scope, nil
}

// applicableSecrets lists the secrets that apply in scope. The innermost come first, so
// their ids are shown if two scopes have the same value. r.mu is held.
func (r *Registry) applicableSecrets(scope Scope) []redact.Secret {
	var all []redact.Secret
	for _, at := range []Scope{scope, {Tenant: scope.Tenant}} {
		if e := r.scopes[at]; e != nil {
			all = append(all, e.secrets...)
		}
		if scope.Run == "" {
			break // scope is the tenant's own
		}
	}
	return append(all, r.hostSecrets...)
}
