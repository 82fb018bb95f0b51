package dispatcher

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
)

// This file serves the test seams that script the mock provider (OpenWOP envelope contract §23.3).

// ProgramMock scripts the mock provider.
func (s *Service) ProgramMock(
	ctx context.Context, req *dispatcherv1.ProgramMockRequest,
) (*dispatcherv1.ProgramMockResponse, error) {
	return s.deps.Seams.ProgramMock(ctx, req)
}

// ResetMock clears the scripts of a tenant.
func (s *Service) ResetMock(
	ctx context.Context, req *dispatcherv1.ResetMockRequest,
) (*dispatcherv1.ResetMockResponse, error) {
	return s.deps.Seams.ResetMock(ctx, req)
}

// LastMockBudget returns the maxTokens of a node's latest mock call.
func (s *Service) LastMockBudget(
	ctx context.Context, req *dispatcherv1.LastMockBudgetRequest,
) (*dispatcherv1.LastMockBudgetResponse, error) {
	return s.deps.Seams.LastMockBudget(ctx, req)
}
