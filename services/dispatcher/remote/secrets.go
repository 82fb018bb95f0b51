package remote

import (
	"context"
	"fmt"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/dispatcher/credential"
)

// Secrets tells the redactor the keys that runs use.
type Secrets struct {
	Client redactorv1.RedactorClient
	Store  *credential.Store
}

// Open registers what a tenant has under a ref, be it nothing, for a run. It may be
// repeated, and has to be after a restart of the redactor.
func (s Secrets) Open(ctx context.Context, tenant, runID, ref string) error {
	keys, err := s.Store.Keys(tenant, ref)
	if err != nil {
		return err
	}
	req := &redactorv1.RegisterRequest{Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID}}
	for provider, key := range keys {
		req.Secrets = append(req.Secrets, &redactorv1.Secret{Id: provider + "." + ref, Value: string(key)})
	}
	if _, err := s.Client.Register(ctx, req); err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	return nil
}

// Close has a run's secrets forgotten: they die with it.
func (s Secrets) Close(ctx context.Context, tenant, runID string) error {
	if _, err := s.Client.Forget(ctx, &redactorv1.ForgetRequest{Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID}}); err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	return nil
}
