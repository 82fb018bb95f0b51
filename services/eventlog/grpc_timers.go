package eventlog

import (
	"context"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of an answer with due timers.
const (
	defaultTimers = 100
	maxTimers     = 1000
)

// ListDueTimers lists runs whose next timer is due, earliest first. Dispatchers use it to find runs
// without an owner. It may lag behind the log; the run's own log decides whether the timer is still
// set.
func (s *Service) ListDueTimers(ctx context.Context, req *eventlogv1.ListDueTimersRequest) (*eventlogv1.ListDueTimersResponse, error) {
	after := store.Timer{
		DueMs:  req.GetAfter().GetDueUnixMs(),
		Tenant: req.GetAfter().GetTenant(),
		RunID:  req.GetAfter().GetRunId(),
	}
	rows, err := s.store.Due(ctx, req.GetBeforeUnixMs(), after, pageSize(req.GetLimit(), defaultTimers, maxTimers))
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	resp := &eventlogv1.ListDueTimersResponse{}
	for _, r := range rows {
		resp.Timers = append(resp.Timers, &eventlogv1.DueTimer{
			Tenant: r.Tenant, WorkflowId: r.WorkflowID, RunId: r.RunID, DueUnixMs: r.DueMs,
		})
	}
	return resp, nil
}
