package dispatcher

import (
	"context"
	"errors"
	"math"

	"waybill.dev/waybill/internal/kv"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/quarantine"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// FindBlockedRuns finds the runs that wait for a slot or a limit, or are quarantined.
func (s *Service) FindBlockedRuns(ctx context.Context, req *dispatcherv1.FindBlockedRunsRequest) (*dispatcherv1.FindBlockedRunsResponse, error) {
	waits := map[string]queue.Wait{}
	if s.scheduler != nil {
		var err error
		if waits, err = s.scheduler.Waits(ctx, req.GetTenant(), req.GetRunIds()); err != nil {
			return nil, blockedFault(err)
		}
	}
	records, err := s.quarantinedAmong(ctx, req.GetTenant(), req.GetRunIds())
	if err != nil {
		return nil, blockedFault(err)
	}
	out := &dispatcherv1.FindBlockedRunsResponse{}
	for _, id := range req.GetRunIds() {
		w, limited := waits[id]
		q, quarantined := records[id]
		if !limited && !quarantined {
			continue
		}
		b := &dispatcherv1.BlockedRun{RunId: id}
		if limited {
			b.Limit = runLimit(w)
		}
		if quarantined {
			b.Quarantine = quarantinedRun(q)
		}
		out.Runs = append(out.Runs, b)
	}
	return out, nil
}

func blockedFault(err error) error {
	if errors.Is(err, kv.ErrUnavailable) {
		return fault.New(fault.ServiceUnavailable, "the lists of waiting and quarantined runs are unavailable; try again").After(retryUnavailable).Wrap(err)
	}
	return err
}

// quarantinedAmong returns the quarantine records of the runs. Errors: kv.ErrUnavailable.
func (s *Service) quarantinedAmong(ctx context.Context, tenant string, runIDs []string) (map[string]quarantine.Record, error) {
	if len(runIDs) == 1 {
		r, err := s.quarantine.Get(ctx, tenant, runIDs[0])
		if fault.CodeOf(err) == fault.NotQuarantined {
			return nil, nil
		}
		return map[string]quarantine.Record{runIDs[0]: r}, err
	}
	all, _, err := s.quarantine.ForTenant(ctx, tenant, "", math.MaxInt) // a few at most
	out := map[string]quarantine.Record{}
	for _, r := range all {
		out[r.Run.RunID] = r
	}
	return out, err
}

func runLimit(w queue.Wait) *dispatcherv1.RunLimit {
	return &dispatcherv1.RunLimit{
		Reason: string(w.Reason), Scope: string(w.Scope), Limit: int32(w.Limit), //nolint:gosec // G115: limits are below 2^31
		PeriodMs: w.Period.Milliseconds(), Keyed: w.Keyed, Since: timestamp(w.Since), Until: timestamp(w.Until),
	}
}
