package clients

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"waybill.dev/waybill/internal/lru"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
)

// Registrations are the secrets that this process registered with redactors, by run. Every call for
// such a run names its registrations, so a redactor that misses one rejects the call and gets them
// again. Each redactor instance only knows the registrations it received while it owned the tenant;
// an instance that regains a tenant has missed those sent to others (OpenWOP envelope contract §11,
// registry).
type Registrations struct {
	client redactorv1.RedactorClient

	mu   sync.Mutex // guards runs
	runs *lru.Cache[scope, []registered]
}

type scope struct{ tenant, run string }

// registered is one Register call and the name in its response.
type registered struct {
	secrets []*redactorv1.Secret
	name    string
}

// maxRuns limits the remembered runs, above the number a dispatcher executes. Calls for a forgotten
// run fail until a dispatcher claims it again.
const maxRuns = 1 << 14

// NewRegistrations returns an empty set of registrations with a redactor.
func NewRegistrations(client redactorv1.RedactorClient) *Registrations {
	return &Registrations{client: client, runs: lru.New[scope, []registered](maxRuns)}
}

// register registers secrets of a run; the list may be empty.
func (t *Registrations) register(ctx context.Context, at scope, list ...*redactorv1.Secret) error {
	res, err := t.client.Register(ctx, &redactorv1.RegisterRequest{
		Scope:   &redactorv1.Scope{Tenant: at.tenant, RunId: at.run},
		Secrets: list,
	})
	if err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all, _ := t.runs.Get(at)
	if !slices.ContainsFunc(all, func(r registered) bool { return r.name == res.GetRegistration() }) {
		all = append(slices.Clip(all), registered{list, res.GetRegistration()})
	}
	t.runs.Put(at, all, 1)
	return nil
}

// forget drops the registrations of a run, here and in the redactor.
func (t *Registrations) forget(ctx context.Context, at scope) error {
	t.mu.Lock()
	t.runs.Delete(at)
	t.mu.Unlock()
	if _, err := t.client.Forget(ctx, &redactorv1.ForgetRequest{Scope: &redactorv1.Scope{Tenant: at.tenant, RunId: at.run}}); err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	return nil
}

func (t *Registrations) list(at scope) []registered {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, _ := t.runs.Get(at)
	return all
}

// names returns the registrations that a redactor must know.
func (t *Registrations) names(at scope) []string {
	all := t.list(at)
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	return names
}

// scope returns the scope of a call for a run. With registered, the redactor must know the run.
func (t *Registrations) scope(at scope, registered bool) *redactorv1.Scope {
	return &redactorv1.Scope{Tenant: at.tenant, RunId: at.run, RequireRegistered: registered, Registrations: t.names(at)}
}

// retryUnregistered makes a call. If the redactor misses registrations, it sends them and repeats
// the call once.
func (t *Registrations) retryUnregistered(ctx context.Context, at scope, call func() error) error {
	err := call()
	if !isUnregistered(err) {
		return err
	}
	all := t.list(at)
	for _, r := range all {
		if rerr := t.register(ctx, at, r.secrets...); rerr != nil {
			return rerr
		}
	}
	if len(all) == 0 {
		return err
	}
	return call()
}

// isUnregistered reports whether a redactor misses registrations.
func isUnregistered(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Details["unregistered"] != nil
}
