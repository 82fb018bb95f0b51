package clients

import (
	"context"
	"fmt"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// Ended finds ended runs in the read model; see retention.Index.
type Ended struct{ Client eventlogv1.EventLogClient }

// Flows lists workflows with ended runs.
func (e Ended) Flows(ctx context.Context, after retention.Flow, limit int) ([]retention.Flow, error) {
	res, err := e.Client.ListEndedWorkflows(ctx, &eventlogv1.ListEndedWorkflowsRequest{
		After: &eventlogv1.EndedWorkflow{Tenant: after.Tenant, WorkflowId: after.WorkflowID},
		Limit: int32(limit), //nolint:gosec // G115: a small constant
	})
	if err != nil {
		return nil, fmt.Errorf("event log: %w", err)
	}
	flows := make([]retention.Flow, 0, len(res.GetWorkflows()))
	for _, w := range res.GetWorkflows() {
		oldest, err := time.Parse(time.RFC3339, w.GetOldest())
		if err != nil {
			return nil, fmt.Errorf("event log: end of the oldest run of workflow %s: %w", w.GetWorkflowId(), err)
		}
		flows = append(flows, retention.Flow{Tenant: w.GetTenant(), WorkflowID: w.GetWorkflowId(), Oldest: oldest})
	}
	return flows, nil
}

// Ended lists ended runs of a workflow.
func (e Ended) Ended(ctx context.Context, of retention.Flow, before time.Time, after retention.End, limit int) ([]retention.End, error) {
	res, err := e.Client.ListEndedRuns(ctx, &eventlogv1.ListEndedRunsRequest{
		Tenant: of.Tenant, WorkflowId: of.WorkflowID, Before: wire.FormatTime(before),
		After: &eventlogv1.EndedRun{CompletedAt: after.CompletedAt, RunId: after.RunID},
		Limit: int32(limit), //nolint:gosec // G115: a small constant
	})
	if err != nil {
		return nil, fmt.Errorf("event log: %w", err)
	}
	runs := make([]retention.End, len(res.GetRuns()))
	for i, r := range res.GetRuns() {
		runs[i] = retention.End{CompletedAt: r.GetCompletedAt(), RunID: r.GetRunId()}
	}
	return runs, nil
}

// Count counts ended runs of a workflow.
func (e Ended) Count(ctx context.Context, of retention.Flow, before ...time.Time) ([]int64, error) {
	instants := make([]string, len(before))
	for i, at := range before {
		instants[i] = wire.FormatTime(at)
	}
	res, err := e.Client.CountEndedRuns(ctx, &eventlogv1.CountEndedRunsRequest{
		Tenant: of.Tenant, WorkflowId: of.WorkflowID, Before: instants,
	})
	if err != nil {
		return nil, fmt.Errorf("event log: %w", err)
	}
	if n := len(res.GetRuns()); n != len(before) {
		return nil, fmt.Errorf("event log: %d counts for %d instants", n, len(before))
	}
	return res.GetRuns(), nil
}
