package engine

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// retentionDays are the ages in days at which the dispatcher counts ended runs.
var retentionDays = []int32{1, 7, 30, 90, 365}

// GetRetention describes how long the tenant's runs are kept after their end.
func (s *Service) GetRetention(ctx context.Context, _ *hostv1.GetRetentionRequest) (*hostv1.GetRetentionResponse, error) {
	res, err := s.deps.Dispatcher.GetRetention(ctx, &dispatcherv1.GetRetentionRequest{Tenant: auth.From(ctx).Tenant})
	if err != nil {
		return nil, err
	}
	out := &hostv1.GetRetentionResponse{
		Retention: res.GetRetention(), Now: res.GetNow(), Holds: res.GetHolds(), More: res.GetMore(),
	}
	older := make([]int64, len(retentionDays))
	for _, w := range res.GetWorkflows() {
		out.Runs += w.GetRuns()
		out.Due += w.GetDue()
		out.DueNextDay += w.GetDueNextDay()
		for i := range older {
			if i < len(w.GetOlder()) {
				older[i] += w.GetOlder()[i]
			}
		}
		out.Workflows = append(out.Workflows, &hostv1.WorkflowRetention{
			WorkflowId: w.GetWorkflowId(), Retention: w.GetRetention(), Source: w.GetSource(), Oldest: w.GetOldest(),
			Runs: w.GetRuns(), Due: w.GetDue(), DueNextDay: w.GetDueNextDay(),
		})
	}
	from, left := int32(0), out.GetRuns()
	for i, days := range retentionDays {
		out.Ages = append(out.Ages, &hostv1.RetentionAge{FromDays: from, ToDays: &days, Runs: left - older[i]})
		from, left = days, older[i]
	}
	out.Ages = append(out.Ages, &hostv1.RetentionAge{FromDays: from, Runs: left})
	return out, nil
}
