package eventlog

import (
	"context"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of a page of ended runs or workflows.
const (
	defaultEnded = 100
	maxEnded     = 1000
)

// ListEndedWorkflows lists the workflows of all tenants that have ended runs.
func (s *Service) ListEndedWorkflows(
	ctx context.Context, req *eventlogv1.ListEndedWorkflowsRequest,
) (*eventlogv1.ListEndedWorkflowsResponse, error) {
	after := store.Workflow{Tenant: req.GetAfter().GetTenant(), WorkflowID: req.GetAfter().GetWorkflowId()}
	rows, err := s.store.Oldest(ctx, after, pageSize(req.GetLimit(), defaultEnded, maxEnded))
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	out := &eventlogv1.ListEndedWorkflowsResponse{}
	for _, r := range rows {
		out.Workflows = append(out.Workflows, &eventlogv1.EndedWorkflow{
			Tenant: r.Tenant, WorkflowId: r.WorkflowID, Oldest: r.CompletedAt,
		})
	}
	return out, nil
}

// ListEndedRuns lists the ended runs of a workflow, in the order of their ends. It may lag behind the
// log.
func (s *Service) ListEndedRuns(ctx context.Context, req *eventlogv1.ListEndedRunsRequest) (*eventlogv1.ListEndedRunsResponse, error) {
	of, err := workflowOf(req.GetTenant(), req.GetWorkflowId(), req.GetBefore())
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Ended(ctx, store.EndedQuery{
		Workflow: of, Before: req.GetBefore(),
		After: store.End{CompletedAt: req.GetAfter().GetCompletedAt(), RunID: req.GetAfter().GetRunId()},
		Limit: pageSize(req.GetLimit(), defaultEnded, maxEnded),
	})
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	out := &eventlogv1.ListEndedRunsResponse{}
	for _, r := range rows {
		out.Runs = append(out.Runs, &eventlogv1.EndedRun{RunId: r.RunID, CompletedAt: r.CompletedAt})
	}
	return out, nil
}

// CountEndedRuns counts the runs of a workflow that ended before each instant.
func (s *Service) CountEndedRuns(ctx context.Context, req *eventlogv1.CountEndedRunsRequest) (*eventlogv1.CountEndedRunsResponse, error) {
	of, err := workflowOf(req.GetTenant(), req.GetWorkflowId(), req.GetBefore()...)
	if err != nil {
		return nil, err
	}
	counts, err := s.store.CountEnded(ctx, of, req.GetBefore())
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	return &eventlogv1.CountEndedRunsResponse{Runs: counts}, nil
}

// workflowOf checks the workflow and the instants of a request.
func workflowOf(tenant, workflowID string, instants ...string) (store.Workflow, error) {
	switch {
	case tenant == "":
		return store.Workflow{}, fault.Empty("tenant").With("field", "tenant")
	case workflowID == "":
		return store.Workflow{}, fault.Empty("workflowId").With("field", "workflowId")
	}
	for _, at := range instants {
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			return store.Workflow{}, fault.New(fault.ValidationError, "before: want an instant in RFC 3339").With("field", "before")
		}
	}
	return store.Workflow{Tenant: tenant, WorkflowID: workflowID}, nil
}
