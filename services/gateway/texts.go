package gateway

import (
	"context"
	"time"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/gateway/annotation"
)

// scrubTimeout bounds one call of the redactor.
const scrubTimeout = 2 * time.Second

// said takes secrets out of what callers write about a run. Only who works on runs knows
// which of them use their tenant's key.
func said(d dispatcherv1.DispatcherClient) annotation.Scrub {
	return func(ctx context.Context, tenant, runID string, list []string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, scrubTimeout)
		defer cancel()
		res, err := d.RedactTexts(ctx, &dispatcherv1.RedactTextsRequest{Tenant: tenant, RunId: runID, Texts: list})
		return res.GetTexts(), err
	}
}

// texts takes secrets out of what callers write of no run.
func texts(r redactorv1.RedactorClient) annotation.Scrub {
	return func(ctx context.Context, tenant, runID string, list []string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, scrubTimeout)
		defer cancel()
		res, err := r.Redact(ctx, &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID}, Texts: list})
		return res.GetTexts(), err
	}
}
