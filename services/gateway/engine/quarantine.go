package engine

import (
	"context"
	"encoding/base64"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// ListQuarantinedRuns lists the tenant's runs that cannot be loaded or continued.
func (s *Service) ListQuarantinedRuns(ctx context.Context, req *hostv1.ListQuarantinedRunsRequest) (*hostv1.ListQuarantinedRunsResponse, error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(req.GetCursor())
	if err != nil {
		return nil, errCursor()
	}
	if req.RunId != nil {
		if err := checkRunID(req.GetRunId()); err != nil {
			return nil, err
		}
	}
	res, err := s.deps.Dispatcher.ListQuarantinedRuns(ctx, &dispatcherv1.ListQuarantinedRunsRequest{
		Tenant: auth.From(ctx).Tenant, After: string(after), Limit: limit, RunId: req.GetRunId(),
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListQuarantinedRunsResponse{}
	for _, r := range res.GetRuns() {
		out.Runs = append(out.Runs, quarantinedRun(r))
	}
	if n := len(out.GetRuns()); res.GetMore() && n > 0 {
		next := base64.RawURLEncoding.EncodeToString([]byte(out.Runs[n-1].GetRunId()))
		out.NextCursor = &next
	}
	return out, nil
}

// The outcomes of a retry.
const (
	outcomeQueued = "queued"
	outcomeEnded  = "ended"
)

// RetryQuarantinedRun puts a quarantined run back into the queue.
func (s *Service) RetryQuarantinedRun(ctx context.Context, req *hostv1.RetryQuarantinedRunRequest) (*hostv1.RetryQuarantinedRunResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.RetryQuarantinedRun(ctx, &dispatcherv1.RetryQuarantinedRunRequest{
		Tenant: auth.From(ctx).Tenant,
		RunId:  req.GetRunId(),
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.RetryQuarantinedRunResponse{RunId: req.GetRunId(), Outcome: outcomeEnded}
	if res.GetQueued() {
		out.Outcome = outcomeQueued
	}
	return out, s.recordAudit(ctx, "run.quarantine.retried", "runs/"+req.GetRunId(), map[string]any{"outcome": out.GetOutcome()})
}

// EndQuarantinedRun ends a quarantined run as cancelled.
func (s *Service) EndQuarantinedRun(ctx context.Context, req *hostv1.EndQuarantinedRunRequest) (*hostv1.EndQuarantinedRunResponse, error) {
	if err := checkReason(req.GetReason()); err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	p := auth.From(ctx)
	reason, err := s.redactReason(ctx, req.GetRunId(), req.GetReason())
	if err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.EndQuarantinedRun(ctx, &dispatcherv1.EndQuarantinedRunRequest{
		Tenant: p.Tenant, RunId: req.GetRunId(), Reason: reason, EndedBy: p.KeyID,
	})
	if err != nil {
		return nil, err
	}
	if err := s.recordAudit(ctx, "run.quarantine.ended", "runs/"+req.GetRunId(), map[string]any{"reason": reason}); err != nil {
		return nil, err
	}
	return &hostv1.EndQuarantinedRunResponse{RunId: req.GetRunId(), Status: res.GetStatus()}, nil
}

// GetRunOwner returns the dispatcher that owns a run, or why no dispatcher executes it.
func (s *Service) GetRunOwner(ctx context.Context, req *hostv1.GetRunOwnerRequest) (*hostv1.GetRunOwnerResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.GetOwnership(ctx, &dispatcherv1.GetOwnershipRequest{
		Tenant: auth.From(ctx).Tenant,
		RunId:  req.GetRunId(),
	})
	if err != nil {
		return nil, err
	}
	var b blocked
	if !res.GetEnded() {
		b = s.findBlocked(ctx, req.GetRunId())[req.GetRunId()]
	}
	return &hostv1.GetRunOwnerResponse{
		RunId:      req.GetRunId(),
		State:      res.GetState(),
		Owner:      stringOrNil(res.GetOwner()),
		Host:       stringOrNil(res.GetHost()),
		Epoch:      int32(min(res.GetEpoch(), 1<<31-1)), //nolint:gosec // G115: bounded
		Since:      stringOrNil(res.GetSince()),
		ExpiresAt:  stringOrNil(res.GetExpiresAt()),
		Limit:      b.limit,
		Quarantine: b.quarantine,
	}, nil
}
