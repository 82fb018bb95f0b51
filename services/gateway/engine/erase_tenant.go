package engine

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// EraseTenant erases everything of the caller's tenant, whose runs must be erased before. Its audit log
// stays: it records who erased the tenant, before anything is erased.
func (s *Service) EraseTenant(ctx context.Context, _ *hostv1.EraseTenantRequest) (*hostv1.EraseTenantResponse, error) {
	tenant := auth.From(ctx).Tenant
	target := "tenants/" + tenant
	if err := s.recordAudit(ctx, "tenant.erasing", target, nil); err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.EraseTenant(ctx, &dispatcherv1.EraseTenantRequest{Tenant: tenant})
	if err != nil {
		return nil, err
	}
	if err := s.recordAudit(ctx, "tenant.erased", target, map[string]any{"workflows": res.GetWorkflows()}); err != nil {
		return nil, err
	}
	return &hostv1.EraseTenantResponse{Workflows: res.GetWorkflows()}, nil
}
