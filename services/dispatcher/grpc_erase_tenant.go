package dispatcher

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/kv"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
)

// EraseTenant erases what is left of a tenant without runs. It may be repeated.
func (s *Service) EraseTenant(ctx context.Context, req *dispatcherv1.EraseTenantRequest) (*dispatcherv1.EraseTenantResponse, error) {
	if s.deps.EraseTenant == nil || s.deps.EraseWorkflow == nil {
		return nil, fault.New(fault.CapabilityNotProvided, "this host cannot erase tenants")
	}
	tenant := req.GetTenant()
	page, err := s.deps.EventLog.ListRuns(ctx, &eventlogv1.ListRunsRequest{Tenant: tenant, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.GetRuns()) > 0 {
		return nil, fault.New(fault.Conflict, "the tenant has runs, such as %s; cancel and erase them first", page.GetRuns()[0].GetRunId()).
			With("runId", page.GetRuns()[0].GetRunId())
	}
	n, err := s.definitions.EraseTenant(ctx, tenant, s.deps.EraseWorkflow)
	if err == nil {
		err = s.deps.EraseTenant(ctx, tenant)
	}
	if errors.Is(err, kv.ErrUnavailable) {
		err = fault.New(fault.ServiceUnavailable, "the records of the tenant are unavailable; repeat the request").After(time.Second).Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	return &dispatcherv1.EraseTenantResponse{Workflows: int32(n)}, nil //nolint:gosec // G115: a number of workflows
}
