package engine

import (
	"context"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// EraseRuns erases the ended runs of one page of the list of runs, each as DeleteRun does. A run that
// cannot be erased does not stop the others. After an error, repeat the request with the same cursor.
func (s *Service) EraseRuns(ctx context.Context, req *hostv1.EraseRunsRequest) (*hostv1.EraseRunsResponse, error) {
	list, before, err := s.checkErase(ctx, req)
	if err != nil {
		return nil, err
	}
	page, err := s.deps.EventLog.ListRuns(ctx, list)
	switch {
	case fault.CodeOf(err) == fault.ValidationError: // all but the cursor is valid
		return nil, fault.InvalidBody("/cursor", "not a cursor of this host")
	case err != nil:
		return nil, err
	}
	out := &hostv1.EraseRunsResponse{NextCursor: stringOrNil(page.GetNextCursor())}
	for _, r := range page.GetRuns() {
		if !wire.Status(r.GetStatus()).Terminal() || !before.IsZero() && !endedBefore(r, before) {
			continue
		}
		if !req.GetDryRun() {
			err = s.eraseRun(ctx, r.GetRunId())
		}
		switch {
		case err == nil:
			out.Erased++
		case fault.CodeOf(err) == fault.RunNotFound: // it is erased, and the list follows
		case ctx.Err() != nil:
			return nil, err
		default:
			out.Refused = append(out.Refused, notErased(r.GetRunId(), err))
		}
	}
	if out.GetErased() > 0 && !req.GetDryRun() {
		s.seeErased(ctx)
	}
	return out, nil
}

// notErased describes a run that was not erased.
func notErased(runID string, err error) *hostv1.RunNotErased {
	f, ok := fault.As(err)
	if !ok { // its text is not for callers
		f = fault.New(fault.InternalError, "the run was not erased; try again")
	}
	return &hostv1.RunNotErased{RunId: runID, Error: string(f.Code), Message: f.Message}
}

// checkErase checks a request, and returns the request for its page of runs.
func (s *Service) checkErase(ctx context.Context, req *hostv1.EraseRunsRequest) (list *eventlogv1.ListRunsRequest, before time.Time, err error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, before, fault.InBody(err)
	}
	filtered := req.GetFilter() != "" || req.EndedBefore != nil
	switch {
	case !filtered && !req.GetAll():
		return nil, before, fault.InvalidBody("", "want filter or endedBefore, or all: true for all ended runs")
	case filtered && req.GetAll():
		return nil, before, fault.InvalidBody("/all", "not together with filter or endedBefore")
	}
	if req.EndedBefore != nil {
		if before, err = time.Parse(time.RFC3339, req.GetEndedBefore()); err != nil {
			return nil, before, fault.InvalidBody("/endedBefore", "want a time in RFC 3339, such as 2026-01-31T00:00:00Z")
		}
	}
	list = &eventlogv1.ListRunsRequest{Tenant: auth.From(ctx).Tenant, Limit: limit, Cursor: req.GetCursor()}
	if err := s.filter(list, &hostv1.ListRunsRequest{Filter: req.Filter}); err != nil {
		return nil, before, fault.InBody(err)
	}
	if list.GetStatus() != "" && !wire.Status(list.GetStatus()).Terminal() {
		return nil, before, fault.InvalidBody("/filter", "status: want completed, failed or cancelled")
	}
	return list, before, nil
}

// endedBefore reports whether a run ended before an instant. A run without a readable end did not.
func endedBefore(r *eventlogv1.RunSummary, at time.Time) bool {
	end, err := time.Parse(time.RFC3339, r.GetCompletedAt())
	return err == nil && end.Before(at)
}
