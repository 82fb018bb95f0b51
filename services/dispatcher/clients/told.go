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

// Told is what this process has told redactors of runs. Every call for such a run names
// it, so that a redactor which was not told all of it refuses, and is told again: of
// several, each knows what it was told while a tenant was its own, and one that gets a
// tenant back has missed what the others were told since (OpenWOP envelope contract §11,
// registry).
type Told struct {
	client redactorv1.RedactorClient

	mu   sync.Mutex // guards runs
	runs *lru.Cache[scope, []registered]
}

type scope struct{ tenant, run string }

// registered is one call of Register, and what it was answered.
type registered struct {
	secrets []*redactorv1.Secret
	name    string
}

// maxTold is how many runs are remembered: more than a dispatcher works on. Calls for one
// that is forgotten are refused until somebody works on it again.
const maxTold = 1 << 14

// NewTold remembers what it tells a redactor.
func NewTold(client redactorv1.RedactorClient) *Told {
	return &Told{client: client, runs: lru.New[scope, []registered](maxTold)}
}

// register tells the redactor secrets of a run, be it none.
func (t *Told) register(ctx context.Context, at scope, list ...*redactorv1.Secret) error {
	res, err := t.client.Register(ctx, &redactorv1.RegisterRequest{Scope: &redactorv1.Scope{Tenant: at.tenant, RunId: at.run}, Secrets: list})
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

// forget drops what was told of a run.
func (t *Told) forget(ctx context.Context, at scope) error {
	t.mu.Lock()
	t.runs.Delete(at)
	t.mu.Unlock()
	if _, err := t.client.Forget(ctx, &redactorv1.ForgetRequest{Scope: &redactorv1.Scope{Tenant: at.tenant, RunId: at.run}}); err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	return nil
}

func (t *Told) all(at scope) []registered {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, _ := t.runs.Get(at)
	return all
}

// names are those that a redactor has to know.
func (t *Told) names(at scope) []string {
	all := t.all(at)
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	return names
}

// scope is what calls for a run send. registered says that the run must be known.
func (t *Told) scope(at scope, registered bool) *redactorv1.Scope {
	return &redactorv1.Scope{Tenant: at.tenant, RunId: at.run, RequireRegistered: registered, Registrations: t.names(at)}
}

// again makes a call, and once more if the redactor did not know all that it has to:
// after it was told.
func (t *Told) again(ctx context.Context, at scope, call func() error) error {
	err := call()
	if !unregistered(err) {
		return err
	}
	all := t.all(at)
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

// unregistered reports that a redactor was not told what it has to know.
func unregistered(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Details["unregistered"] != nil
}
