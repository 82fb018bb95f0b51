package gateway

import (
	"context"
	"time"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/gateway/annotation"
)

// scrubTimeout bounds one call of the redactor.
const scrubTimeout = 2 * time.Second

// texts takes secrets out of what callers write about a run.
func texts(r redactorv1.RedactorClient) annotation.Scrub {
	return func(ctx context.Context, tenant, runID string, list []string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, scrubTimeout)
		defer cancel()
		res, err := r.Redact(ctx, &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID}, Texts: list})
		return res.GetTexts(), err
	}
}
