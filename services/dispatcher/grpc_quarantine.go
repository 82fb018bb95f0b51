package dispatcher

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/kv"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

// ListQuarantinedRuns lists a tenant's quarantined runs.
func (s *Service) ListQuarantinedRuns(ctx context.Context, req *dispatcherv1.ListQuarantinedRunsRequest) (*dispatcherv1.ListQuarantinedRunsResponse, error) {
	var (
		records []quarantine.Record
		more    bool
		err     error
	)
	if id := req.GetRunId(); id != "" {
		var one quarantine.Record
		if one, err = s.quarantine.Get(ctx, req.GetTenant(), id); err == nil && id > req.GetAfter() {
			records = append(records, one)
		}
		if fault.CodeOf(err) == fault.NotQuarantined {
			err = nil
		}
	} else {
		records, more, err = s.quarantine.ForTenant(ctx, req.GetTenant(), req.GetAfter(), int(req.GetLimit()))
	}
	if err != nil {
		return nil, s.quarantineFault(err)
	}
	out := &dispatcherv1.ListQuarantinedRunsResponse{More: more}
	for _, r := range records {
		out.Runs = append(out.Runs, quarantinedRun(r))
	}
	return out, nil
}

func quarantinedRun(r quarantine.Record) *dispatcherv1.QuarantinedRun {
	return &dispatcherv1.QuarantinedRun{
		RunId: r.Run.RunID, WorkflowId: r.Run.WorkflowID, Reason: r.Reason, Since: timestamp(r.Since), NextCheckAt: timestamp(r.Next),
		Checks: int32(r.Checks), Tries: int32(r.Tries), //nolint:gosec // G115: both are bounded
	}
}

// timestamp formats an instant; empty for the zero time.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return wire.FormatTime(t)
}

// RetryQuarantinedRun puts a run back into the queue.
func (s *Service) RetryQuarantinedRun(ctx context.Context, req *dispatcherv1.RetryQuarantinedRunRequest) (*dispatcherv1.RetryQuarantinedRunResponse, error) {
	queued, err := s.quarantine.Retry(ctx, req.GetTenant(), req.GetRunId())
	if err != nil {
		return nil, s.quarantineFault(err)
	}
	return &dispatcherv1.RetryQuarantinedRunResponse{Queued: queued}, nil
}

// EndQuarantinedRun ends a run as cancelled.
func (s *Service) EndQuarantinedRun(ctx context.Context, req *dispatcherv1.EndQuarantinedRunRequest) (*dispatcherv1.EndQuarantinedRunResponse, error) {
	if _, err := s.quarantine.Get(ctx, req.GetTenant(), req.GetRunId()); err != nil {
		return nil, s.quarantineFault(err)
	}
	status, err := s.executor.EndQuarantined(ctx, req.GetTenant(), req.GetRunId(), req.GetReason(), req.GetEndedBy())
	if err != nil {
		return nil, s.quarantineFault(err)
	}
	if err := s.quarantine.Release(ctx, req.GetTenant(), req.GetRunId()); err != nil { // the next check finds the end
		s.deps.Logger.Warn("ended run still listed as quarantined", "run_id", req.GetRunId(), "error", err)
	}
	return &dispatcherv1.EndQuarantinedRunResponse{Status: string(status)}, nil
}

// quarantineFault maps errors of the list and the log.
func (s *Service) quarantineFault(err error) error {
	switch {
	case errors.Is(err, kv.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the list of quarantined runs is unavailable; try again").After(time.Second).Wrap(err)
	case errors.Is(err, kv.ErrConflict):
		return fault.New(fault.Conflict, "a dispatcher is checking the run; try again").Wrap(err)
	default:
		return s.logFault(err)
	}
}
