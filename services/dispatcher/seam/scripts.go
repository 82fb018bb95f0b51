package seam

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/kv"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// This file scripts the mock provider (OpenWOP envelope contract §23.3).

// Check checks that test seams are served and that there is a tenant.
func (s *Seams) Check(tenant string) error {
	if s == nil || s.Scripts == nil {
		return fault.New(fault.NotFound, "test seams are not served; start the host with --test-seams")
	}
	if !subject.Token(tenant) {
		return fault.Empty("tenant")
	}
	return nil
}

// scriptFault maps errors of the script store.
func scriptFault(err error) error {
	switch {
	case errors.Is(err, kv.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the scripts of the mock provider are unavailable; try again").After(time.Second).Wrap(err)
	case errors.Is(err, ErrTooLarge):
		return fault.New(fault.PayloadTooLarge, "the script is too large; give fewer or shorter entries").Wrap(err)
	}
	return err
}

// ProgramMock scripts the mock provider.
func (s *Seams) ProgramMock(ctx context.Context, req *dispatcherv1.ProgramMockRequest) (*dispatcherv1.ProgramMockResponse, error) {
	if err := s.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	entries := make([]mock.Entry, len(req.GetProgram()))
	for i, e := range req.GetProgram() {
		entries[i] = mock.Entry{
			StopReason: e.GetStopReason(), Content: e.GetContent(), RefusalText: e.GetRefusalText(),
			OutputTokens: int(e.GetOutputTokens()), InputTokens: int(e.GetInputTokens()), Panic: e.GetPanic(),
		}
	}
	if err := s.Scripts.Program(ctx, req.GetTenant(), req.GetNodeId(), entries); err != nil {
		return nil, scriptFault(err)
	}
	return &dispatcherv1.ProgramMockResponse{Count: int32(len(entries))}, nil //nolint:gosec // G115: bounded by the request's size
}

// ResetMock clears the scripts of a tenant.
func (s *Seams) ResetMock(ctx context.Context, req *dispatcherv1.ResetMockRequest) (*dispatcherv1.ResetMockResponse, error) {
	if err := s.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	if text := req.GetPanic(); text != "" {
		panic(errors.New(text)) // requested by a test of panics
	}
	n, err := s.Scripts.Reset(ctx, req.GetTenant())
	if err != nil {
		return nil, scriptFault(err)
	}
	return &dispatcherv1.ResetMockResponse{Cleared: int32(n)}, nil //nolint:gosec // G115: a small count
}

// LastMockBudget returns the maxTokens of a node's latest mock call.
func (s *Seams) LastMockBudget(ctx context.Context, req *dispatcherv1.LastMockBudgetRequest) (*dispatcherv1.LastMockBudgetResponse, error) {
	if err := s.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	n, ok, err := s.Scripts.LastBudget(ctx, req.GetTenant(), req.GetNodeId())
	if err != nil {
		return nil, scriptFault(err)
	}
	out := &dispatcherv1.LastMockBudgetResponse{}
	if ok {
		v := int32(n) //nolint:gosec // G115: a token budget
		out.MaxTokens = &v
	}
	return out, nil
}
