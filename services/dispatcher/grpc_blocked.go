package dispatcher

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/kv"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
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

// quarantineReads limits the concurrent reads of a request.
const quarantineReads = 16

// quarantinedAmong returns the quarantine records of the runs. It reads them one by one: a tenant
// may have many others in quarantine. Errors: kv.ErrUnavailable.
func (s *Service) quarantinedAmong(ctx context.Context, tenant string, runIDs []string) (map[string]quarantine.Record, error) {
	var mu sync.Mutex
	out := map[string]quarantine.Record{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(quarantineReads)
	for _, id := range runIDs {
		g.Go(func() error {
			r, err := s.quarantine.Get(ctx, tenant, id)
			if fault.CodeOf(err) == fault.NotQuarantined {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = r
			return err
		})
	}
	return out, g.Wait()
}

func runLimit(w queue.Wait) *dispatcherv1.RunLimit {
	return &dispatcherv1.RunLimit{
		Reason: string(w.Reason), Scope: string(w.Scope), Limit: int32(w.Limit), //nolint:gosec // G115: limits are below 2^31
		PeriodMs: w.Period.Milliseconds(), Keyed: w.Keyed, Since: timestamp(w.Since), Until: timestamp(w.Until),
	}
}
