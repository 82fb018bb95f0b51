package engine

import (
	"context"
	"slices"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// DrainPolicies are those that a pause can have.
func DrainPolicies() []string {
	return []string{string(wire.DrainNot), string(wire.DrainCurrent)}
}

// PauseRun stops a run until it is resumed (OpenWOP host contract §2.7).
func (s *Service) PauseRun(ctx context.Context, req *openwopv1.PauseRunRequest) (*openwopv1.PauseRunResponse, error) {
	policy := string(wire.DrainCurrent)
	if req.DrainPolicy != nil {
		policy = req.GetDrainPolicy()
	}
	if err := checkReason(req.GetReason()); err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	if !slices.Contains(DrainPolicies(), policy) {
		return nil, fault.New(fault.ValidationError, "/drainPolicy: want immediate or drain-current-node").Unprocessable().
			With("unsupportedDrainPolicy", policy).With("supportedDrainPolicies", DrainPolicies())
	}
	p := auth.From(ctx)
	res, err := s.deps.Dispatcher.PauseRun(ctx, &dispatcherv1.PauseRunRequest{
		Tenant: p.Tenant, RunId: req.GetRunId(), Reason: req.GetReason(), PausedBy: p.KeyID, DrainPolicy: policy,
	})
	if err != nil {
		return nil, err
	}
	if err := s.record(ctx, "run.paused", "runs/"+req.GetRunId(), map[string]any{"reason": req.GetReason(), "drainPolicy": policy}); err != nil {
		return nil, err
	}
	return &openwopv1.PauseRunResponse{RunId: req.GetRunId(), Status: string(wire.StatusPaused), PausedAt: res.GetPausedAt()}, nil
}

// ResumeRun lets a paused run go on (OpenWOP host contract §2.7).
func (s *Service) ResumeRun(ctx context.Context, req *openwopv1.ResumeRunRequest) (*openwopv1.ResumeRunResponse, error) {
	if err := checkReason(req.GetReason()); err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.ResumeRun(ctx, &dispatcherv1.ResumeRunRequest{
		Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId(), Reason: req.GetReason(),
	})
	if err != nil {
		return nil, err
	}
	if err := s.record(ctx, "run.resumed", "runs/"+req.GetRunId(), map[string]any{"reason": req.GetReason()}); err != nil {
		return nil, err
	}
	return &openwopv1.ResumeRunResponse{RunId: req.GetRunId(), Status: string(wire.StatusRunning), ResumedAt: res.GetResumedAt()}, nil
}

func checkReason(reason string) error {
	if len([]rune(reason)) > maxReason {
		return fault.New(fault.ValidationError, "/reason: want at most %d characters", maxReason)
	}
	return nil
}
