package engine

import (
	"context"
	"slices"
	"time"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

const (
	// quietAfter is how long a run has no event until a dispatcher is asked whether it is blocked:
	// reads of runs that make progress need no dispatcher.
	quietAfter = time.Second
	// blockedPatience bounds that question. Without an answer the run is shown by its log alone.
	blockedPatience = 500 * time.Millisecond
)

// blocked is why no dispatcher executes a run; the zero value: it is not blocked, as far as known.
type blocked struct {
	limit      *hostv1.RunLimit
	quarantine *hostv1.QuarantinedRun
}

func (b blocked) any() bool { return b.limit != nil || b.quarantine != nil }

// quiet reports whether a run that the host has to move has had no event for a while.
func (s *Service) quiet(w *eventlogv1.RunWait, lastEventAt string) bool {
	if !slices.Contains(hostWaits, w.GetFor()) {
		return false
	}
	last, err := time.Parse(wire.TimeLayout, lastEventAt)
	return err != nil || s.deps.Clock().Sub(last) >= quietAfter
}

// findBlocked finds out which runs of the caller's tenant wait for a slot or a limit, or are
// quarantined. It is not recorded in their logs. Nothing is found if no dispatcher answers.
func (s *Service) findBlocked(ctx context.Context, runIDs ...string) map[string]blocked {
	if len(runIDs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, blockedPatience)
	defer cancel()
	res, err := s.deps.Dispatcher.FindBlockedRuns(ctx, &dispatcherv1.FindBlockedRunsRequest{
		Tenant: auth.From(ctx).Tenant,
		RunIds: runIDs,
	})
	if err != nil {
		return nil
	}
	out := map[string]blocked{}
	for _, r := range res.GetRuns() {
		b := blocked{limit: runLimit(r.GetLimit())}
		if q := r.GetQuarantine(); q != nil {
			b.quarantine = quarantinedRun(q)
		}
		out[r.GetRunId()] = b
	}
	return out
}

func runLimit(l *dispatcherv1.RunLimit) *hostv1.RunLimit {
	if l == nil {
		return nil
	}
	out := &hostv1.RunLimit{
		Reason: l.GetReason(),
		Scope:  l.GetScope(),
		Keyed:  l.GetKeyed(),
		Since:  l.GetSince(),
		Until:  stringOrNil(l.GetUntil()),
	}
	if l.GetLimit() > 0 {
		out.Limit = &l.Limit
	}
	if l.GetPeriodMs() > 0 {
		out.PeriodMs = &l.PeriodMs
	}
	return out
}

func quarantinedRun(r *dispatcherv1.QuarantinedRun) *hostv1.QuarantinedRun {
	return &hostv1.QuarantinedRun{
		RunId: r.GetRunId(), WorkflowId: r.GetWorkflowId(), Reason: r.GetReason(), Since: stringOrNil(r.GetSince()),
		NextCheckAt: r.GetNextCheckAt(), Checks: r.GetChecks(), Tries: r.GetTries(),
	}
}
