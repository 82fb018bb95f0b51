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

// DrainPolicies lists the drain policies of a pause.
func DrainPolicies() []string {
	return []string{string(wire.DrainNot), string(wire.DrainCurrent)}
}

// PauseRun pauses a run until it is resumed (OpenWOP host contract §2.7).
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
		return nil, fault.InvalidBody("/drainPolicy", "want immediate or drain-current-node").Unprocessable().
			With("unsupportedDrainPolicy", policy).With("supportedDrainPolicies", DrainPolicies())
	}
	p := auth.From(ctx)
	reason, err := s.redactReason(ctx, req.GetRunId(), req.GetReason())
	if err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.PauseRun(ctx, &dispatcherv1.PauseRunRequest{
		Tenant: p.Tenant, RunId: req.GetRunId(), Reason: reason, PausedBy: p.KeyID, DrainPolicy: policy,
	})
	if err != nil {
		return nil, err
	}
	if err := s.recordAudit(ctx, "run.paused", "runs/"+req.GetRunId(), map[string]any{"reason": reason, "drainPolicy": policy}); err != nil {
		return nil, err
	}
	return &openwopv1.PauseRunResponse{
		RunId:    req.GetRunId(),
		Status:   string(wire.StatusPaused),
		PausedAt: res.GetPausedAt(),
	}, nil
}

// ResumeRun resumes a paused run (OpenWOP host contract §2.7).
func (s *Service) ResumeRun(ctx context.Context, req *openwopv1.ResumeRunRequest) (*openwopv1.ResumeRunResponse, error) {
	if err := checkReason(req.GetReason()); err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	reason, err := s.redactReason(ctx, req.GetRunId(), req.GetReason())
	if err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.ResumeRun(ctx, &dispatcherv1.ResumeRunRequest{
		Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId(), Reason: reason,
	})
	if err != nil {
		return nil, err
	}
	if err := s.recordAudit(ctx, "run.resumed", "runs/"+req.GetRunId(), map[string]any{"reason": reason}); err != nil {
		return nil, err
	}
	return &openwopv1.ResumeRunResponse{
		RunId:     req.GetRunId(),
		Status:    string(wire.StatusRunning),
		ResumedAt: res.GetResumedAt(),
	}, nil
}

func checkReason(reason string) error {
	if len([]rune(reason)) > maxReason {
		return fault.InvalidBody("/reason", "want at most %d characters", maxReason)
	}
	return nil
}

// redactReason returns the caller's reason, redacted for the run log and the audit log. The
// dispatcher redacts it, because it alone knows whether the run uses its tenant's key.
func (s *Service) redactReason(ctx context.Context, runID, reason string) (string, error) {
	if reason == "" {
		return "", nil
	}
	res, err := s.deps.Dispatcher.RedactTexts(ctx, &dispatcherv1.RedactTextsRequest{
		Tenant: auth.From(ctx).Tenant,
		RunId:  runID,
		Texts:  []string{reason},
	})
	if err != nil {
		return "", err
	}
	if len(res.GetTexts()) != 1 {
		return "", fault.New(fault.InternalError, "the dispatcher returned no redacted reason")
	}
	return res.GetTexts()[0], nil
}
