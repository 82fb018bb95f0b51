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
// rows, by an index, and loads maxWorkflows × maxPriced runs.
const (
	maxWorkflows  = 20
	maxSummarized = 200
	maxLatest     = 10
	maxPriced     = 20
	// maxPricedEvents is the length of the longest run that is loaded for its cost.
	maxPricedEvents = 2000
)

// SummarizeWorkflows summarizes the latest runs of workflows.
func (s *Service) SummarizeWorkflows(ctx context.Context, req *eventlogv1.SummarizeWorkflowsRequest) (*eventlogv1.SummarizeWorkflowsResponse, error) {
	if len(req.GetWorkflowIds()) > maxWorkflows {
		return nil, fault.New(fault.ValidationError, "workflowId: want at most %d, got %d", maxWorkflows, len(req.GetWorkflowIds())).
			With("field", "workflowId")
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
	return out, s.addCosts(ctx, out, rows)
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

// addCosts adds the costs of the latest runs that have ended. Runs whose provider reports no cost,
// damaged and very long runs have none.
func (s *Service) addCosts(ctx context.Context, out *eventlogv1.WorkflowStatistics, rows []store.Run) error {
	ended := 0
	for _, r := range rows {
		if !r.Status.Terminal() {
			continue
		}
		if ended++; ended > maxPriced {
			return nil
		}
		if r.Damage != "" || r.Head > maxPricedEvents {
			continue
		}
		err := s.views.with(ctx, r, func(w *view) {
			switch m := w.run.State.Snapshot().Metrics; {
			case m == nil: // no model was called
				out.Priced++
			case m.Cost.USD != nil:
				out.Priced++
				out.CostUsd += *m.Cost.USD
			}
		})
		if err != nil {
			return s.failure(r.Key, err)
		}
	}
	return nil
}
