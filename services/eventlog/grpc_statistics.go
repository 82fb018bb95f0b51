package eventlog

import (
	"context"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of the statistics of workflows. A request reads at most maxWorkflows × (maxSummarized+1)
// rows, by an index.
const (
	maxWorkflows  = 20
	maxSummarized = 200
	maxLatest     = 10
)

// SummarizeWorkflows summarizes the latest runs of workflows.
func (s *Service) SummarizeWorkflows(ctx context.Context, req *eventlogv1.SummarizeWorkflowsRequest) (*eventlogv1.SummarizeWorkflowsResponse, error) {
	if len(req.GetWorkflowIds()) > maxWorkflows {
		return nil, fault.InvalidQuery("workflowId", "want at most %d, got %d", maxWorkflows, len(req.GetWorkflowIds()))
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	out := &eventlogv1.SummarizeWorkflowsResponse{}
	for _, id := range req.GetWorkflowIds() {
		one, err := s.statistics(ctx, req.GetTenant(), id)
		if err != nil {
			return nil, err
		}
		out.Workflows = append(out.Workflows, one)
	}
	return out, nil
}

// statistics summarizes the latest runs of a workflow.
func (s *Service) statistics(ctx context.Context, tenant, workflowID string) (*eventlogv1.WorkflowStatistics, error) {
	out := &eventlogv1.WorkflowStatistics{WorkflowId: workflowID}
	if workflowID == "" { // would select all runs
		return out, nil
	}
	rows, next, err := s.rows(ctx, store.Query{Tenant: tenant, WorkflowID: workflowID, Limit: maxSummarized})
	if err != nil {
		return nil, err
	}
	out.Runs, out.More = int32(len(rows)), next != "" //nolint:gosec // G115: at most maxSummarized
	var took []int64
	for _, r := range rows {
		switch r.Status {
		case wire.StatusCompleted:
			out.Completed++
			if ms, ok := tookMs(r); ok {
				took = append(took, ms)
			}
		case wire.StatusFailed:
			out.Failed++
		case wire.StatusCancelled:
			out.Cancelled++
		default: // active
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		p50, p95 := percentile(took, 50), percentile(took, 95)
		out.P50Ms, out.P95Ms = &p50, &p95
	}
	for _, r := range rows[:min(maxLatest, len(rows))] {
		out.Latest = append(out.Latest, summary(r))
	}
	addCosts(out, rows)
	return out, nil
}

// tookMs returns the time from a run's start to its end.
func tookMs(r store.Run) (int64, bool) {
	from, errFrom := time.Parse(wire.TimeLayout, r.StartedAt)
	to, errTo := time.Parse(wire.TimeLayout, r.CompletedAt)
	return to.Sub(from).Milliseconds(), errFrom == nil && errTo == nil
}

// percentile returns the nearest-rank percentile of sorted values: the least value that at least
// rank percent of them do not exceed.
func percentile(sorted []int64, rank int) int64 {
	return sorted[(len(sorted)*rank+99)/100-1]
}

// addCosts adds the costs of the runs that have ended. Runs whose provider reports no cost have none.
func addCosts(out *eventlogv1.WorkflowStatistics, rows []store.Run) {
	for _, r := range rows {
		switch {
		case !r.Status.Terminal() || !r.Facts.Known:
		case r.Facts.Model == "": // no model was called
			out.Priced++
		case r.Facts.Cost != nil:
			out.Priced++
			out.CostUsd += *r.Facts.Cost
		}
	}
}
