package dispatcher

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/kv"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// openRetention creates the holds and the sweeper, if the host has stores for them.
func (s *Service) openRetention() {
	d := s.deps
	if d.Retention == nil {
		return
	}
	s.holds = retention.NewHolds(d.Retention, d.Log, d.Clock)
	if s.eraser == nil {
		return
	}
	s.eraser.Guard(s.holds.Claim)
	s.sweeper = retention.NewSweeper(
		retention.Config{Rate: s.cfg.RetentionRate},
		retention.Policies{
			Default: s.cfg.Retention,
			Tenant: func(tenant string) (time.Duration, bool) {
				return d.TenantLimits.Current().Retention(tenant)
			},
			Workflow: s.definitions.Retention,
		},
		retention.NewClock(d.Retention, d.Clock, d.LogState),
		clients.Ended{Client: d.EventLog},
		expirer{s.eraser, s.holds, s.archiver},
		s.leases.Valid,
		d.Logger,
	)
}

// expirer is the eraser as the sweeper uses it.
type expirer struct {
	*retention.Eraser
	holds    *retention.Holds
	archiver *retention.Archiver
}

func (e expirer) Expire(ctx context.Context, run subject.Run) error {
	_, err := e.Erase(ctx, run, frame.Expired)
	return err
}

// ownRetention makes the first dispatcher with a lease the one that sweeps.
func (s *Service) ownRetention(ctx context.Context) error {
	defer s.sweeper.Own(false)
	return s.leases.FollowRank(ctx, func(rank, _ int) { s.sweeper.Own(rank == 0) })
}

// FollowRank calls f with the rank of this process among the dispatchers with a lease, from 0, and with
// their number, after each change until ctx ends.
func (s *Service) FollowRank(ctx context.Context, f func(rank, of int)) error {
	return s.leases.FollowRank(ctx, f)
}

// errNoHolds is the error of a host without stores for holds.
func errNoHolds() error {
	return fault.New(fault.CapabilityNotProvided, "this host has no retention and no legal holds")
}

// HoldRun sets the legal hold of a run.
func (s *Service) HoldRun(ctx context.Context, req *dispatcherv1.HoldRunRequest) (*dispatcherv1.HoldRunResponse, error) {
	if s.holds == nil {
		return nil, errNoHolds()
	}
	run := subject.Run{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	hold, created, err := s.holds.Set(ctx, run, retention.Hold{Reason: req.GetReason(), HeldBy: req.GetHeldBy()})
	if err != nil {
		return nil, s.logFault(err)
	}
	return &dispatcherv1.HoldRunResponse{Hold: holdMessage(hold), Created: created}, nil
}

func holdMessage(h retention.Hold) *dispatcherv1.Hold {
	return &dispatcherv1.Hold{RunId: h.RunID, Reason: h.Reason, HeldBy: h.HeldBy, Since: wire.FormatTime(h.Since)}
}

// ReleaseRun removes the legal hold of a run.
func (s *Service) ReleaseRun(ctx context.Context, req *dispatcherv1.ReleaseRunRequest) (*dispatcherv1.ReleaseRunResponse, error) {
	if s.holds == nil {
		return nil, errNoHolds()
	}
	released, err := s.holds.Release(ctx, subject.Run{Tenant: req.GetTenant(), RunID: req.GetRunId()})
	if err != nil {
		return nil, s.logFault(err)
	}
	return &dispatcherv1.ReleaseRunResponse{Released: released}, nil
}

// ListHolds lists the legal holds of a tenant.
func (s *Service) ListHolds(ctx context.Context, req *dispatcherv1.ListHoldsRequest) (*dispatcherv1.ListHoldsResponse, error) {
	if s.holds == nil {
		return nil, errNoHolds()
	}
	holds, more, err := s.holds.List(ctx, req.GetTenant(), req.GetAfter(), int(req.GetLimit()))
	if err != nil {
		return nil, s.logFault(err)
	}
	out := &dispatcherv1.ListHoldsResponse{More: more}
	for _, h := range holds {
		out.Holds = append(out.Holds, holdMessage(h))
	}
	return out, nil
}

// maxRetained is the number of workflows that GetRetention describes.
const maxRetained = 500

// GetRetention describes the retention of a tenant's runs.
func (s *Service) GetRetention(ctx context.Context, req *dispatcherv1.GetRetentionRequest) (*dispatcherv1.GetRetentionResponse, error) {
	if s.sweeper == nil {
		return nil, errNoHolds()
	}
	now, err := retention.Read(ctx, s.deps.Retention, s.deps.Clock)
	if errors.Is(err, kv.ErrUnavailable) {
		return nil, fault.New(fault.ServiceUnavailable, "the clock of retention is unavailable; try again").After(time.Second).Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	if now.IsZero() { // nothing was swept yet
		now = s.deps.Clock()
	}
	p, tenant := s.sweeper.Policies(), req.GetTenant()
	flows, more, err := retention.Report(ctx, clients.Ended{Client: s.deps.EventLog}, p, tenant, now, maxRetained)
	if err != nil {
		return nil, s.logFault(err)
	}
	holds, _, err := s.holds.List(ctx, tenant, "", int(^uint(0)>>1))
	if err != nil {
		return nil, err
	}
	out := &dispatcherv1.GetRetentionResponse{
		Retention: workflow.FormatRetention(p.OfTenant(tenant).Keep), Now: wire.FormatTime(now), More: more, Holds: int64(len(holds)),
	}
	for _, f := range flows {
		out.Workflows = append(out.Workflows, &dispatcherv1.RetainedWorkflow{
			WorkflowId: f.WorkflowID, Retention: workflow.FormatRetention(f.Keep), Source: string(f.Source),
			Oldest: wire.FormatTime(f.Oldest), Runs: f.Runs, Due: f.Due, DueNextDay: f.NextDay, Older: f.Older,
		})
	}
	return out, nil
}
