package clients

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/dispatcher/credential"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Secrets tells the redactor the keys that runs use.
type Secrets struct {
	Told  *Told
	Store *credential.Store
	// Logger is told of keys that cannot be read.
	Logger *slog.Logger
}

// Open registers what a tenant has under a ref, be it nothing, for a run. It may be
// repeated, and has to be after a restart of the redactor.
func (s Secrets) Open(ctx context.Context, tenant, runID, ref string) error {
	keys, err := s.Store.Keys(tenant, ref)
	if err != nil { // no call is made with such a key
		s.Logger.Warn("credentials left out", "tenant", tenant, "error", err)
	}
	var list []*redactorv1.Secret
	for _, id := range slices.Sorted(maps.Keys(keys)) { // of two with one value the first names it
		list = append(list, secretOf(id, ref, keys[id]))
	}
	return s.Told.register(ctx, scope{tenant, runID}, list...)
}

// Key is a tenant's key for a provider.
func (s Secrets) Key(tenant, providerID, ref string) (provider.Secret, error) {
	return s.Store.Key(tenant, providerID, ref)
}

// Hide registers one key for a run. A key that was changed meanwhile is known beside
// the one before.
func (s Secrets) Hide(ctx context.Context, tenant, runID, providerID, ref string, key provider.Secret) error {
	return s.Told.register(ctx, scope{tenant, runID}, secretOf(providerID, ref, key))
}

func secretOf(providerID, ref string, key provider.Secret) *redactorv1.Secret {
	return &redactorv1.Secret{Id: providerID + "." + ref, Value: string(key)}
}

// Close has a run's secrets forgotten: they die with it.
func (s Secrets) Close(ctx context.Context, tenant, runID string) error {
	return s.Told.forget(ctx, scope{tenant, runID})
}
