package eventlog

import (
	"context"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog/store"
)

// maxCounted limits the runs that a count reads, of each status or together; see store.Counter.
const maxCounted = 20_000

// CountRuns counts a tenant's runs per status. The counts include every run whose creation was
// acknowledged before the call.
func (s *Service) CountRuns(ctx context.Context, req *eventlogv1.CountRunsRequest) (*eventlogv1.CountRunsResponse, error) {
	if req.GetFilters() == nil {
		return nil, fault.InvalidBody("/filters", "required")
	}
	q, err := s.listQuery(req.GetFilters())
	if err != nil {
		return nil, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	bounded, cancel := s.searching(ctx, q)
	defer cancel()
	counts, err := s.store.Count(bounded, q, maxCounted)
	if err != nil {
		return nil, s.searchFailure(bounded, err)
	}
	resp := &eventlogv1.CountRunsResponse{Counts: map[string]int64{}, Complete: counts.Complete}
	for status, n := range counts.ByStatus {
		resp.Counts[string(status)] = int64(n)
	}
	return resp, nil
}

// facts returns what lists show of a run; nil if it is not known yet.
func facts(f *store.Facts) *eventlogv1.RunFacts {
	if !f.Known {
		return nil
	}
	return &eventlogv1.RunFacts{
		Model: f.Model, LastNode: f.LastNode, InputTokens: f.TokensIn, OutputTokens: f.TokensOut, Cost: f.Cost,
		DurationMs: f.DurationMs, WaitingSince: f.WaitingSince, InputPreview: f.Inputs,
	}
}
