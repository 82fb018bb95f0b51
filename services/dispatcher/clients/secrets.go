package clients

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
)

// Secrets registers the keys of runs with the redactor.
type Secrets struct {
	Registrations *Registrations
	Store         *credential.Store
	// Logger logs unreadable keys.
	Logger *slog.Logger
}

// Open registers a tenant's keys under a ref for a run; there may be none. It can be repeated, and
// must be after a restart of the redactor.
func (s Secrets) Open(ctx context.Context, tenant, runID, ref string) error {
	keys, err := s.Store.Keys(tenant, ref)
	if err != nil { // no call uses such a key
		s.Logger.Warn("credentials left out", "tenant", tenant, "error", err)
	}
	var list []*redactorv1.Secret
	for _, id := range slices.Sorted(maps.Keys(keys)) { // the first of equal values names it
		list = append(list, newSecret(id, ref, keys[id]))
	}
	return s.Registrations.register(ctx, scope{tenant, runID}, list...)
}

// Key returns a tenant's key for a provider.
func (s Secrets) Key(tenant, providerID, ref string) (provider.Secret, error) {
	return s.Store.Key(tenant, providerID, ref)
}

// Hide registers one key for a run. After a change both keys stay registered.
func (s Secrets) Hide(ctx context.Context, tenant, runID, providerID, ref string, key provider.Secret) error {
	return s.Registrations.register(ctx, scope{tenant, runID}, newSecret(providerID, ref, key))
}

func newSecret(providerID, ref string, key provider.Secret) *redactorv1.Secret {
	return &redactorv1.Secret{Id: providerID + "." + ref, Value: string(key)}
}

// Close removes a run's secrets.
func (s Secrets) Close(ctx context.Context, tenant, runID string) error {
	return s.Registrations.forget(ctx, scope{tenant, runID})
}
