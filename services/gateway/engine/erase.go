package engine

import (
	"context"
	"net/http"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// DeleteRun erases a run that has ended. Who erases it is in the audit log before anything is
// erased, because afterwards no other trace of the run is left. The erasure of an erased run has no
// effect.
func (s *Service) DeleteRun(ctx context.Context, req *hostv1.DeleteRunRequest) (*hostv1.DeleteRunResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	if err := s.eraseRun(ctx, req.GetRunId()); err != nil {
		return nil, err
	}
	s.seeErased(ctx)
	return &hostv1.DeleteRunResponse{}, nil
}

// seeErased waits until reads do not find runs that were erased before. A list includes everything
// acknowledged before, so its reader has seen the erasures afterwards. If it fails, the reader sees
// them a little later.
func (s *Service) seeErased(ctx context.Context) {
	_, _ = s.deps.EventLog.ListRuns(ctx, &eventlogv1.ListRunsRequest{Tenant: auth.From(ctx).Tenant, Limit: 1})
}

func (s *Service) eraseRun(ctx context.Context, runID string) error {
	target := "runs/" + runID
	_, err := s.runOf(ctx, runID)
	known := fault.CodeOf(err) != fault.RunNotFound
	if err != nil && known && fault.CodeOf(err) != fault.LogDamaged { // a damaged run can be erased
		return err
	}
	if known {
		if err := s.recordAudit(ctx, "run.erasing", target, nil); err != nil {
			return err
		}
	}
	tenant := auth.From(ctx).Tenant
	res, err := s.deps.Dispatcher.EraseRun(ctx, &dispatcherv1.EraseRunRequest{Tenant: tenant, RunId: runID})
	if err != nil {
		if code := fault.CodeOf(err); known && fault.Lookup(code).HTTP < http.StatusInternalServerError {
			_ = s.recordAudit(ctx, "run.erase.refused", target, map[string]any{"code": string(code)}) // nothing was erased
		}
		return err
	}
	if known || res.GetErased() {
		if err := s.recordAudit(ctx, "run.erased", target, nil); err != nil {
			return err
		}
	}
	return nil
}
