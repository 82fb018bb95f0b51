package dispatcher

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/queue"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// openQueue puts the scheduler between the queue and the pool if waiting runs can be stored.
func (s *Service) openQueue() {
	s.queue = s.deps.Queue
	cfg := queue.Config{Size: s.cfg.MaxRuns}
	size := s.cfg.MaxRuns
	if s.deps.Waiting != nil {
		s.scheduler = queue.New(cfg, queue.Deps{
			Queue: s.deps.Queue, Log: s.deps.Log, Tickets: s.deps.Waiting, Rates: s.deps.Rates, Leases: s.leases,
			Tenant: s.tenant, Scheduled: s.definitions.Scheduled, Clock: s.deps.Clock, Logger: s.deps.Logger,
		})
		s.queue, size = s.scheduler, cfg.Slots()
	}
	s.pool = queue.NewPool(s.queue, s.executor, size, s.deps.Logger)
}

// tenant returns the current limits of a tenant.
func (s *Service) tenant(tenant string) queue.Tenant {
	t := s.deps.TenantLimits.Current().For(tenant)
	out := queue.Tenant{Weight: t.Weight, Priority: t.Priority}
	if t.Concurrency != nil {
		out.Concurrency = t.Concurrency.Limit
	}
	if t.Rate != nil {
		out.Rate, out.Period = t.Rate.Limit, t.Rate.Period()
	}
	return out
}

// execute runs the pool.
func (s *Service) execute(ctx context.Context) error {
	if s.scheduler == nil {
		return s.pool.Run(ctx)
	}
	return s.scheduler.Serve(ctx, s.pool.Run)
}

// admitCall admits a call of a tool or an agent; see tool.Router.
func (s *Service) admitCall(ctx context.Context, runID, id string, limits []tool.CallLimit) (tool.Admission, error) {
	if s.scheduler == nil { // no shared counts
		return tool.Admission{Release: func() {}}, nil
	}
	shared := make([]queue.CallLimit, len(limits))
	for i, l := range limits {
		shared[i] = queue.CallLimit(l)
	}
	a, err := s.scheduler.AdmitCall(ctx, runID, id, shared)
	return tool.Admission(a), err
}

// isQueued reports whether a run waits in the queue, with the frame at pos, or in a ticket.
func (s *Service) isQueued(r subject.Run, pos uint64) bool {
	return s.intake.IsUndelivered(pos) || s.scheduler != nil && s.scheduler.HasTicket(r)
}

// parked returns the number of a tenant's runs that wait for a slot.
func (s *Service) parked(tenant string) int {
	if s.scheduler == nil {
		return 0
	}
	return s.scheduler.Parked(tenant)
}

func (s *Service) schedulerCollectors() []prometheus.Collector {
	if s.scheduler == nil {
		return nil
	}
	return s.scheduler.Collectors()
}
