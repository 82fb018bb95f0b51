package engine

import (
	"context"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// maxStatistics is how many workflows a request may name.
const maxStatistics = 20

// ListWorkflowStatistics summarizes the latest runs of workflows.
func (s *Service) ListWorkflowStatistics(ctx context.Context, req *hostv1.ListWorkflowStatisticsRequest) (*hostv1.ListWorkflowStatisticsResponse, error) {
	ids := req.GetWorkflowId()
	if len(ids) == 0 || len(ids) > maxStatistics || slices.Contains(ids, "") {
		return nil, fault.InvalidQuery("workflowId", "want the ids of 1 to %d workflows", maxStatistics)
	}
	res, err := s.deps.EventLog.SummarizeWorkflows(ctx, &eventlogv1.SummarizeWorkflowsRequest{
		Tenant: auth.From(ctx).Tenant, WorkflowIds: ids,
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListWorkflowStatisticsResponse{}
	for _, w := range res.GetWorkflows() {
		one := &hostv1.WorkflowStatistics{
			WorkflowId: w.GetWorkflowId(), Runs: w.GetRuns(), More: w.GetMore(), Completed: w.GetCompleted(), Failed: w.GetFailed(),
			Cancelled: w.GetCancelled(), P50Ms: w.P50Ms, P95Ms: w.P95Ms, Priced: w.GetPriced(), CostUsd: w.GetCostUsd(),
		}
		one.Latest = s.runSummaries(ctx, w.GetLatest())
		out.Workflows = append(out.Workflows, one)
	}
	return out, nil
}

// usualStatisticsSpan is the span of statistics without since.
const usualStatisticsSpan = 24 * time.Hour

// GetStatistics returns what the runs of the caller's tenant did in a span of time.
func (s *Service) GetStatistics(ctx context.Context, req *hostv1.GetStatisticsRequest) (*hostv1.GetStatisticsResponse, error) {
	since, until, err := s.span(req.Since, req.Until)
	if err != nil {
		return nil, err
	}
	if req.WorkflowId != nil && req.GetWorkflowId() == "" {
		return nil, fault.InvalidQuery("workflowId", "want the id of a workflow")
	}
	res, err := s.deps.EventLog.GetStatistics(ctx, &eventlogv1.GetStatisticsRequest{
		Tenant: auth.From(ctx).Tenant, Since: since, Until: until, WorkflowId: req.GetWorkflowId(),
	})
	if err != nil {
		return nil, err
	}
	return res.GetStatistics(), nil
}

// ListTenantStatistics returns what the runs of tenants did in a span of time: of all tenants for an
// operator, otherwise of the caller's.
func (s *Service) ListTenantStatistics(ctx context.Context, req *hostv1.ListTenantStatisticsRequest) (*hostv1.ListTenantStatisticsResponse, error) {
	since, until, err := s.span(req.Since, req.Until)
	if err != nil {
		return nil, err
	}
	of := &eventlogv1.ListTenantStatisticsRequest{Tenant: auth.From(ctx).Tenant, Since: since, Until: until}
	if auth.From(ctx).May(auth.TenantsRead) {
		of.Tenant = ""
	}
	res, err := s.deps.EventLog.ListTenantStatistics(ctx, of)
	if err != nil {
		return nil, err
	}
	return res.GetStatistics(), nil
}

// span returns the ends of a span of time, by default the last hours.
func (s *Service) span(from, to *string) (since, until string, err error) {
	end := s.deps.Clock().UTC()
	if to != nil {
		if end, err = time.Parse(time.RFC3339, *to); err != nil {
			return "", "", fault.InvalidQuery("until", "want a time of RFC 3339")
		}
	}
	since = end.Add(-usualStatisticsSpan).Format(time.RFC3339Nano)
	if from != nil {
		since = *from
	}
	return since, end.Format(time.RFC3339Nano), nil
}
