package redaction

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// Texts removes secrets from texts of a tenant. runID is empty for texts that concern no
// run. The result has one text for each given one.
type Texts func(ctx context.Context, tenant, runID string, list []string) ([]string, error)

// RunTexts redacts texts about a run. It calls the dispatcher, which alone knows whether
// the run uses its tenant's key.
func RunTexts(d dispatcherv1.DispatcherClient) Texts {
	return func(ctx context.Context, tenant, runID string, list []string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		res, err := d.RedactTexts(ctx, &dispatcherv1.RedactTextsRequest{Tenant: tenant, RunId: runID, Texts: list})
		return res.GetTexts(), err
	}
}

// TenantTexts redacts texts of a tenant that concern no run.
func TenantTexts(r redactorv1.RedactorClient) Texts {
	return func(ctx context.Context, tenant, runID string, list []string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		res, err := r.Redact(ctx, &redactorv1.RedactRequest{
			Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID},
			Texts: list,
		})
		return res.GetTexts(), err
	}
}
