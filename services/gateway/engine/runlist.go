package engine

import (
	"context"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runfilter"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// ListRuns lists runs, newest first.
func (s *Service) ListRuns(ctx context.Context, req *hostv1.ListRunsRequest) (*hostv1.ListRunsResponse, error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	if req.Status != nil && !slices.Contains(wire.Statuses(), wire.Status(req.GetStatus())) {
		return nil, fault.New(fault.ValidationError, "status: want one of %v", wire.Statuses())
	}
	list := &eventlogv1.ListRunsRequest{Tenant: auth.From(ctx).Tenant, Limit: limit, Cursor: req.GetCursor()}
	if err := s.filter(list, req); err != nil {
		return nil, err
	}
	res, err := s.deps.EventLog.ListRuns(ctx, list)
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListRunsResponse{NextCursor: set(res.GetNextCursor())}
	var quiet []string
	for _, r := range res.GetRuns() {
		if s.quiet(r.GetWaits(), r.GetLastEventAt()) {
			quiet = append(quiet, r.GetRunId())
		}
	}
	found := s.findBlocked(ctx, quiet...)
	for _, r := range res.GetRuns() {
		out.Runs = append(out.Runs, s.row(r, found[r.GetRunId()]))
	}
	return out, nil
}

// filter puts the filter's words and the parameters of their own together.
func (s *Service) filter(list *eventlogv1.ListRunsRequest, req *hostv1.ListRunsRequest) error {
	f, err := runfilter.Parse(req.GetFilter(), s.deps.Clock())
	if err != nil {
		return fault.New(fault.ValidationError, "filter: %s", err).With("field", "filter").With("names", runfilter.Names)
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
			return fault.New(fault.ValidationError, "%s: the filter names another; give it once", p.name).With("field", p.name)
		}
		*p.into = max(p.own, p.word) // one is empty, or both are the same
	}
	list.ErrorCode, list.Kind, list.Provider = f.Code, f.Kind, f.Provider
	if !f.Since.IsZero() {
		list.Since = f.Since.UTC().Format(time.RFC3339Nano)
	}
	return nil
}

// row is a row of the list as its readers see it. A run that is blocked is not stalled.
func (s *Service) row(r *eventlogv1.RunSummary, b blocked) *hostv1.RunSummary {
	out := &hostv1.RunSummary{
		RunId: r.GetRunId(), WorkflowId: r.GetWorkflowId(), Status: r.GetStatus(), CreatedAt: r.GetCreatedAt(),
		StartedAt: set(r.GetStartedAt()), CompletedAt: set(r.GetCompletedAt()), Tags: r.GetTags(), ErrorCode: set(r.GetErrorCode()),
		LastEventAt: set(r.GetLastEventAt()), LastSequence: r.GetLastSequence(),
	}
	out.Waits, out.Quarantine = waits(r.GetWaits(), b.limit), b.quarantine
	if stalls, ok := s.stalls(r.GetWaits(), r.GetLastEventAt()); ok && !b.any() {
		out.Stalled = !s.deps.Clock().Before(stalls)
		out.StallsAt = set(wire.FormatTime(stalls))
	}
	return out
}

// waits is what a run waits for, as its readers see it; nil: nothing.
func waits(w *eventlogv1.RunWait, limit *hostv1.RunLimit) *hostv1.RunWait {
	if w == nil {
		return nil
	}
	out := &hostv1.RunWait{
		For: w.GetFor(), NodeId: set(w.GetNodeId()), Since: set(w.GetSince()), DueAt: set(w.GetDueAt()), HeldBy: set(w.GetHeldBy()), Limit: limit,
	}
	if w.GetAttempt() > 0 {
		out.Attempt = &w.Attempt
	}
	if w.GetQuestions() > 0 {
		out.Questions = &w.Questions
	}
	return out
}

// overdue are what the host itself has to do something about: if nothing is heard of it,
// somebody should look.
var overdue = []string{"dispatcher", "node", "timer", "cancellation"}

// stalls is when a run counts as stalled if nothing is heard of it until then: some time
// after its last event, or after the timer that it waits for. ok is false when somebody
// outside has to act, or the run has ended.
func (s *Service) stalls(w *eventlogv1.RunWait, lastEventAt string) (at time.Time, ok bool) {
	if s.deps.StalledAfter <= 0 || !slices.Contains(overdue, w.GetFor()) {
		return time.Time{}, false
	}
	heard := max(lastEventAt, w.GetDueAt())
	last, err := time.Parse(wire.TimeLayout, heard)
	return last.Add(s.deps.StalledAfter), err == nil
}
