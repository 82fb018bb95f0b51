package engine

import (
	"context"
	"encoding/base64"
	"strings"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// HoldRun sets the legal hold of a run, which forbids its erasure. A run that has a hold keeps it.
func (s *Service) HoldRun(ctx context.Context, req *hostv1.HoldRunRequest) (*hostv1.Hold, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.GetReason()) == "" {
		return nil, fault.InvalidBody("/reason", "want why the run is held")
	}
	if err := checkReason(req.GetReason()); err != nil {
		return nil, err
	}
	reason, err := s.redactReason(ctx, req.GetRunId(), req.GetReason())
	if err != nil {
		return nil, err
	}
	p := auth.From(ctx)
	res, err := s.deps.Dispatcher.HoldRun(ctx, &dispatcherv1.HoldRunRequest{
		Tenant: p.Tenant, RunId: req.GetRunId(), Reason: reason, HeldBy: p.KeyID,
	})
	if err != nil {
		return nil, err
	}
	if res.GetCreated() {
		if err := s.recordAudit(ctx, "run.held", "runs/"+req.GetRunId(), map[string]any{"reason": reason}); err != nil {
			return nil, err
		}
	}
	return holdOf(res.GetHold()), nil
}

func holdOf(h *dispatcherv1.Hold) *hostv1.Hold {
	return &hostv1.Hold{RunId: h.GetRunId(), Reason: h.GetReason(), HeldBy: h.GetHeldBy(), Since: h.GetSince()}
}

// ReleaseRun removes the legal hold of a run. Who removes it is in the audit log before the hold is
// gone. The release of a run without a hold has no effect.
func (s *Service) ReleaseRun(ctx context.Context, req *hostv1.ReleaseRunRequest) (*hostv1.ReleaseRunResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	if _, err := s.runOf(ctx, req.GetRunId()); err != nil && fault.CodeOf(err) != fault.LogDamaged {
		return nil, err
	}
	target := "runs/" + req.GetRunId()
	if err := s.recordAudit(ctx, "run.releasing", target, nil); err != nil {
		return nil, err
	}
	tenant := auth.From(ctx).Tenant
	res, err := s.deps.Dispatcher.ReleaseRun(ctx, &dispatcherv1.ReleaseRunRequest{Tenant: tenant, RunId: req.GetRunId()})
	if err != nil {
		return nil, err
	}
	if res.GetReleased() {
		if err := s.recordAudit(ctx, "run.released", target, nil); err != nil {
			return nil, err
		}
	}
	return &hostv1.ReleaseRunResponse{}, nil
}

// ListHolds lists the legal holds of the tenant, by run id.
func (s *Service) ListHolds(ctx context.Context, req *hostv1.ListHoldsRequest) (*hostv1.ListHoldsResponse, error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(req.GetCursor())
	if err != nil {
		return nil, errCursor()
	}
	res, err := s.deps.Dispatcher.ListHolds(ctx, &dispatcherv1.ListHoldsRequest{
		Tenant: auth.From(ctx).Tenant, After: string(after), Limit: limit,
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListHoldsResponse{}
	for _, h := range res.GetHolds() {
		out.Holds = append(out.Holds, holdOf(h))
	}
	if n := len(out.GetHolds()); res.GetMore() && n > 0 {
		out.NextCursor = stringOrNil(base64.RawURLEncoding.EncodeToString([]byte(out.Holds[n-1].GetRunId())))
	}
	return out, nil
}
