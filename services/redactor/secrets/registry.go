// Package secrets remembers which secrets apply where: the host's everywhere,
// a tenant's in all its runs, a run's in that run.
//
// What is remembered here dies with the process or with Forget, and is
// registered again when another process takes the run over (OpenWOP envelope
// contract §11, registry). Of several registries each knows what it was told, and one
// that a scope has come back to may have missed something: so whoever asks names what
// was registered, and one that was not told all of it refuses. Nothing is ever evicted to make room: forgetting a
// live secret would show it. A full registry refuses new ones instead.
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

// Scope says whose secrets apply. An empty Run is the tenant as a whole.
type Scope struct{ Tenant, Run string }

// Limits bound the memory of a registry.
type Limits struct {
	// Scopes is how many tenants and runs may have secrets at one time.
	Scopes int
	// Secrets is how many a scope may have.
	Secrets int
	// ValueBytes is the longest value of one secret.
	ValueBytes int
	// ScopeBytes is the sum of all values of a scope. An automaton takes some
	// 400 times as much, for the encodings of each value.
	ScopeBytes int
}

// DefaultLimits suit a host with a few thousand active runs.
var DefaultLimits = Limits{Scopes: 10_000, Secrets: 64, ValueBytes: 8 << 10, ScopeBytes: 32 << 10}

// Registry holds the secrets of the host, its tenants and their runs. It is
// safe for concurrent use.
type Registry struct {
	limits      Limits
	shapes      *redact.Shapes
	host        *redact.Scrubber
	hostSecrets []redact.Secret

	mu     sync.RWMutex // guards scopes and its entries but for their scrubbers
	scopes map[Scope]*entry
}

// entry is one scope's secrets, and the automaton made of them and of those of
// the wider scopes. scrubber is nil until it is asked for, and again after a
// change in its own or a wider scope.
type entry struct {
	secrets       []redact.Secret
	bytes         int
	registrations map[string]bool // the digests of what was registered
	scrubber      atomic.Pointer[redact.Scrubber]
}

// New makes a registry with the host's own secrets. Platform credentials
// belong in there: the protocol does not ask for it, but a leak is a leak.
// Errors: fault.ValidationError for a secret with an unusable id.
//
// shapes is the second layer; nil: none.
func New(host []redact.Secret, limits Limits, shapes *redact.Shapes) (*Registry, error) {
	for _, s := range host {
		if err := s.Validate(); err != nil {
			return nil, err
		}
	}
	return &Registry{
		limits: limits, shapes: shapes, host: redact.Compile(host).With(shapes), hostSecrets: slices.Clone(host), scopes: map[Scope]*entry{},
	}, nil
}

// Register adds secrets to a scope. A value already there stays; a second value
// under one id is added, for the old one must not be shown either. With no
// secrets it makes the scope known. Either all are added or none. It gives the digest
// by which callers name what they have registered. Errors: fault.ValidationError,
// fault.RateLimited when the registry or scope is full.
func (r *Registry) Register(scope Scope, secrets []redact.Secret) (string, error) {
	if scope.Tenant == "" {
		return "", fault.New(fault.ValidationError, "scope.tenant: must not be empty")
	}
	for i, s := range secrets {
		if err := r.validateSecret(i, s); err != nil {
			return "", err
		}
	}
	told := digest(scope, secrets)
	return told, r.addSecrets(scope, secrets, told)
}

func (r *Registry) addSecrets(scope Scope, secrets []redact.Secret, told string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.scopes[scope]
	if !known {
		if len(r.scopes) >= r.limits.Scopes {
			return fault.New(fault.RateLimited, "the redactor holds the secrets of %d runs and tenants already; forget some", r.limits.Scopes)
		}
		e = &entry{}
	}
	if known && e.registrations[told] {
		return nil // nothing new: the automaton stays
	}
	merged := e.withSecrets(secrets)
	merged.registrations[told] = true
	if len(merged.registrations) > maxRegistrations {
		return fault.New(fault.RateLimited, "the secrets of a run or tenant may be registered in at most %d ways", maxRegistrations)
	}
	if len(merged.secrets) > r.limits.Secrets || merged.bytes > r.limits.ScopeBytes {
		return fault.New(fault.RateLimited, "a run or tenant may have at most %d secrets of %d bytes in all", r.limits.Secrets, r.limits.ScopeBytes)
	}
	r.scopes[scope] = merged
	if known && len(merged.secrets) == len(e.secrets) {
		merged.scrubber.Store(e.scrubber.Load())
		return nil
	}
	r.invalidate(scope)
	return nil
}

// check tells a secret by its place: of ids nobody knows yet what is in them.
func (r *Registry) validateSecret(i int, s redact.Secret) error {
	if f, ok := fault.As(s.Validate()); ok {
		return fault.New(f.Code, "secrets[%d]: %s", i, f.Message)
	}
	if len(s.Value) > r.limits.ValueBytes {
		return fault.New(fault.ValidationError, "secrets[%d]: the value has more than %d bytes", i, r.limits.ValueBytes)
	}
	return nil
}

// with is the entry with more secrets; e itself stays as it is.
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

// changed drops the automata that contain the secrets of scope. r.mu is held.
func (r *Registry) invalidate(scope Scope) {
	if scope.Run != "" {
		return // no other scope contains a run's, and its own entry is new
	}
	for at, e := range r.scopes {
		if at.Tenant == scope.Tenant {
			e.scrubber.Store(nil)
		}
	}
}

// Forget drops the secrets of a run, or with an empty Run those of a tenant.
// Runs of the tenant keep their own. Forgetting twice is no error.
func (r *Registry) Forget(scope Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.scopes[scope]; !known {
		return
	}
	delete(r.scopes, scope)
	r.invalidate(scope)
}

// Len is how many tenants and runs have secrets.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.scopes)
}

// Host gives the automaton of the host's own secrets.
func (r *Registry) HostScrubber() *redact.Scrubber { return r.host }

// Need says who must have been registered, be it without secrets, before anything
// is scrubbed, and names what was: all of it must be known. A need of the run, or of the
// tenant, that names nothing of it is never met.
type Required struct {
	Run, Tenant   bool
	Registrations []string
}

// Scrubber gives the automaton for a scope: its own secrets, its tenant's and
// the host's. It is compiled on first use and kept until one of them changes.
// Errors: fault.ServiceUnavailable while one that is needed is not registered; one
// look tells both, so that what is forgotten meanwhile lets nothing through.
func (r *Registry) Scrubber(scope Scope, need Required) (*redact.Scrubber, error) {
	r.mu.RLock()
	err := r.checkRegistered(scope, need)
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
	if err := r.checkRegistered(scope, need); err != nil { // anew: the scope may have changed in between
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

// registered refuses while one that is needed is not known, as after a restart
// (OpenWOP envelope contract §11, registry). r.mu is held.
func (r *Registry) checkRegistered(scope Scope, need Required) error {
	var missing []string
	if i := slices.IndexFunc(need.Registrations, func(name string) bool {
		return !strings.HasPrefix(name, runPrefix) && !strings.HasPrefix(name, tenantPrefix)
	}); i >= 0 {
		return fault.New(fault.ValidationError, "scope.registrations[%d]: want what Register has answered", i)
	}
	if !r.hasRegistrations(scope, need.Run, runPrefix, need.Registrations) {
		missing = append(missing, "run")
	}
	if !r.hasRegistrations(Scope{Tenant: scope.Tenant}, need.Tenant, tenantPrefix, need.Registrations) {
		missing = append(missing, "tenant")
	}
	if missing == nil {
		return nil
	}
	return fault.New(fault.ServiceUnavailable, "the secrets of the %s are not registered; register them, or that there are none, and try again",
		strings.Join(missing, " and the ")).With("unregistered", missing)
}

// told reports that a scope was told all of its kind that is named, and, where something
// must be, that there is any. r.mu is held.
func (r *Registry) hasRegistrations(scope Scope, must bool, kind string, named []string) bool {
	e := r.scopes[scope]
	for _, name := range named {
		switch ours := strings.HasPrefix(name, kind); {
		case ours && (e == nil || !e.registrations[name]):
			return false
		case ours:
			must = false
		}
	}
	return !must
}

// narrow finds the innermost scope that has secrets, so that runs without any
// share the automaton of their tenant, and tenants that of the host; e is nil
// for the host. r.mu is held.
func (r *Registry) innermost(scope Scope) (at Scope, e *entry) {
	for _, at := range []Scope{scope, {Tenant: scope.Tenant}} {
		if e := r.scopes[at]; e != nil && len(e.secrets) > 0 {
			return at, e
		}
	}
	return scope, nil
}

// merged lists the secrets that apply in scope. The innermost come first: of
// two ids for one value the narrower one is shown. r.mu is held.
func (r *Registry) applicableSecrets(scope Scope) []redact.Secret {
	var all []redact.Secret
	for _, at := range []Scope{scope, {Tenant: scope.Tenant}} {
		if e := r.scopes[at]; e != nil {
			all = append(all, e.secrets...)
		}
		if scope.Run == "" {
			break // the tenant's own scope: once is enough
		}
	}
	return append(all, r.hostSecrets...)
}
