package eventlog

import (
	"context"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of a page of owned runs.
const (
	defaultOwned = 100
	maxOwned     = 1000
)

// ListOwnedRuns lists the active runs of all tenants that a dispatcher process owns. Dispatchers
// use it to take over runs from another one; the run's own log decides who owns the run now.
func (s *Service) ListOwnedRuns(ctx context.Context, req *eventlogv1.ListOwnedRunsRequest) (*eventlogv1.ListOwnedRunsResponse, error) {
	if req.GetProcess() == "" {
		return nil, fault.Empty("process").With("field", "process")
	}
	if err := s.await(ctx, req.GetAtLeast()); err != nil {
		return nil, err
	}
	position := s.ingest.Applied()
	after := store.Key{Tenant: req.GetAfter().GetTenant(), RunID: req.GetAfter().GetRunId()}
	rows, err := s.store.Owned(ctx, req.GetProcess(), after, pageSize(req.GetLimit(), defaultOwned, maxOwned))
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	// The position is reset before the store is emptied.
	resp := &eventlogv1.ListOwnedRunsResponse{Position: min(position, s.ingest.Applied())}
	for _, r := range rows {
		resp.Runs = append(resp.Runs, &eventlogv1.OwnedRun{
			Tenant:     r.Tenant,
			WorkflowId: r.WorkflowID,
			RunId:      r.RunID,
			Owner:      owner(r.Owner),
		})
	}
	return resp, nil
}

// owner returns the owner of a run; nil if there is none.
func owner(o store.Owner) *eventlogv1.RunOwner {
	if o == (store.Owner{}) {
		return nil
	}
	return &eventlogv1.RunOwner{Process: o.Process, Epoch: o.Epoch, Since: o.Since}
}
