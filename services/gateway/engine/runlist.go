package engine

import (
	"context"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/runview"
)

// sortCreated is the order of a list that the request does not sort.
const sortCreated = "created"

// RunSorts lists the values by which runs can be ordered.
func RunSorts() []string {
	return []string{sortCreated, "model", "lastNode", "tokens", "cost", "duration", "waitingSince"}
}

// RunOrders lists the directions of an order.
func RunOrders() []string { return []string{"asc", "desc"} }

// order sets the order of a list.
func order(list *eventlogv1.ListRunsRequest, req *hostv1.ListRunsRequest) error {
	if req.Sort != nil && !slices.Contains(RunSorts(), req.GetSort()) {
		return fault.OneOf("sort", RunSorts())
	}
	if req.Order != nil && !slices.Contains(RunOrders(), req.GetOrder()) {
		return fault.OneOf("order", RunOrders())
	}
	if req.GetSort() != sortCreated {
		list.Sort = req.GetSort()
	}
	list.Ascending = req.GetOrder() == "asc"
	return nil
}

// ListRuns lists runs, newest first unless the request sorts them.
func (s *Service) ListRuns(ctx context.Context, req *hostv1.ListRunsRequest) (*hostv1.ListRunsResponse, error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	if req.Status != nil && !slices.Contains(wire.Statuses(), wire.Status(req.GetStatus())) {
		return nil, fault.OneOf("status", wire.Statuses())
	}
	list := &eventlogv1.ListRunsRequest{Tenant: auth.From(ctx).Tenant, Limit: limit, Cursor: req.GetCursor()}
	if err := s.filter(list, req); err != nil {
		return nil, err
	}
	if err := order(list, req); err != nil {
		return nil, err
	}
	res, err := s.deps.EventLog.ListRuns(ctx, list)
	if err != nil {
		return nil, err
	}
	return &hostv1.ListRunsResponse{NextCursor: stringOrNil(res.GetNextCursor()), Runs: s.runSummaries(ctx, res.GetRuns())}, nil
}

// runSummaries converts rows of the run list.
func (s *Service) runSummaries(ctx context.Context, rows []*eventlogv1.RunSummary) []*hostv1.RunSummary {
	var quiet []string
	for _, r := range rows {
		if s.quiet(r.GetWaits(), r.GetLastEventAt()) {
			quiet = append(quiet, r.GetRunId())
		}
	}
	found := s.findBlocked(ctx, quiet...)
	var out []*hostv1.RunSummary
	for _, r := range rows {
		out = append(out, s.runSummary(r, found[r.GetRunId()]))
	}
	return out
}

// filter combines the filter with the separate query parameters.
func (s *Service) filter(list *eventlogv1.ListRunsRequest, req *hostv1.ListRunsRequest) error {
	f, err := runview.ParseFilter(req.GetFilter(), s.deps.Clock())
	if err != nil {
		return fault.Invalid(fault.Problem{In: fault.Query, Path: "filter", Message: err.Error(), Allowed: runview.FilterNames})
	}
	for _, p := range []struct {
		name, own, word string
		into            *string
	}{
		{"status", req.GetStatus(), string(f.Status), &list.Status},
		{"workflowId", req.GetWorkflowId(), f.WorkflowID, &list.WorkflowId},
		{"tag", req.GetTag(), f.Tag, &list.Tag},
	} {
		if p.own != "" && p.word != "" && p.own != p.word {
			return fault.InvalidQuery(p.name, "conflicts with the filter; give it once")
		}
		*p.into = max(p.own, p.word) // one is empty, or both are equal
	}
	list.ErrorCode, list.Kind, list.Provider, list.Model, list.MinCost = f.Code, f.Kind, f.Provider, f.Model, f.MinCost
	list.Text = f.Text
	for _, t := range []struct {
		at   time.Time
		into *string
	}{{f.Since, &list.Since}, {f.Until, &list.Until}, {f.Waiting, &list.WaitingSince}} {
		if !t.at.IsZero() {
			*t.into = t.at.UTC().Format(time.RFC3339Nano)
		}
	}
	return nil
}

// CountRuns counts runs per status.
func (s *Service) CountRuns(ctx context.Context, req *hostv1.CountRunsRequest) (*hostv1.CountRunsResponse, error) {
	list := &eventlogv1.ListRunsRequest{Tenant: auth.From(ctx).Tenant}
	if err := s.filter(list, &hostv1.ListRunsRequest{Filter: req.Filter}); err != nil {
		return nil, err
	}
	res, err := s.deps.EventLog.CountRuns(ctx, &eventlogv1.CountRunsRequest{Filters: list})
	if err != nil {
		return nil, err
	}
	out := &hostv1.CountRunsResponse{Truncated: !res.GetComplete()}
	for _, status := range wire.Statuses() {
		if n := res.GetCounts()[string(status)]; n > 0 {
			out.Counts = append(out.Counts, &hostv1.RunCount{Status: string(status), Count: n})
			out.Total += n
		}
	}
	return out, nil
}

// addFacts adds what lists show of a run and sort by.
func addFacts(to *hostv1.RunSummary, f *eventlogv1.RunFacts) {
	if f == nil {
		return
	}
	to.Model, to.LastNode = stringOrNil(f.GetModel()), stringOrNil(f.GetLastNode())
	to.InputTokens, to.OutputTokens, to.CostUsd, to.DurationMs = f.InputTokens, f.OutputTokens, f.Cost, f.DurationMs
	to.WaitingSince, to.InputPreview = stringOrNil(f.GetWaitingSince()), stringOrNil(f.GetInputPreview())
}

// runSummary converts a row of the run list. A blocked run is not stalled.
func (s *Service) runSummary(r *eventlogv1.RunSummary, b blocked) *hostv1.RunSummary {
	out := &hostv1.RunSummary{
		RunId:        r.GetRunId(),
		WorkflowId:   r.GetWorkflowId(),
		Status:       r.GetStatus(),
		CreatedAt:    r.GetCreatedAt(),
		StartedAt:    stringOrNil(r.GetStartedAt()),
		CompletedAt:  stringOrNil(r.GetCompletedAt()),
		Tags:         r.GetTags(),
		ErrorCode:    stringOrNil(r.GetErrorCode()),
		LastEventAt:  stringOrNil(r.GetLastEventAt()),
		LastSequence: r.GetLastSequence(),
	}
	addFacts(out, r.GetFacts())
	out.Waits, out.Quarantine = runWait(r.GetWaits(), b.limit), b.quarantine
	if stalls, ok := s.stallsAt(r.GetWaits(), r.GetLastEventAt()); ok && !b.any() {
		out.Stalled = !s.deps.Clock().Before(stalls)
		out.StallsAt = stringOrNil(wire.FormatTime(stalls))
	}
	return out
}

// runWait converts what a run waits for; nil if nothing.
func runWait(w *eventlogv1.RunWait, limit *hostv1.RunLimit) *hostv1.RunWait {
	if w == nil {
		return nil
	}
	out := &hostv1.RunWait{
		For:    w.GetFor(),
		NodeId: stringOrNil(w.GetNodeId()),
		Since:  stringOrNil(w.GetSince()),
		DueAt:  stringOrNil(w.GetDueAt()),
		HeldBy: stringOrNil(w.GetHeldBy()),
		Limit:  limit,
	}
	if w.GetAttempt() > 0 {
		out.Attempt = &w.Attempt
	}
	if w.GetQuestions() > 0 {
		out.Questions = &w.Questions
	}
	return out
}

// hostWaits are the waits that the host itself must end. A run in one of them is stalled if
// no event follows.
var hostWaits = []string{"dispatcher", "node", "timer", "cancellation"}

// stallsAt returns when a run counts as stalled without further events: StalledAfter after
// its last event, or after the timer it waits for. ok is false if the run has ended or waits
// for an external party.
func (s *Service) stallsAt(w *eventlogv1.RunWait, lastEventAt string) (at time.Time, ok bool) {
	if s.cfg.StalledAfter <= 0 || !slices.Contains(hostWaits, w.GetFor()) {
		return time.Time{}, false
	}
	heard := max(lastEventAt, w.GetDueAt())
	last, err := time.Parse(wire.TimeLayout, heard)
	return last.Add(s.cfg.StalledAfter), err == nil
}
