package dispatcher

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
)

// The states of an ownership.
const (
	OwnerNone     = "none"
	OwnerOwned    = "owned"
	OwnerReleased = "released"
	OwnerExpired  = "expired"
)

// GetOwnership returns the dispatcher that owns a run, from the run's log, and the expiry of its
// lease.
func (s *Service) GetOwnership(ctx context.Context, req *dispatcherv1.GetOwnershipRequest) (*dispatcherv1.GetOwnershipResponse, error) {
	run := subject.Run{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	o, err := s.executor.Ownership(ctx, run)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, fault.NoRun()
	}
	if err != nil {
		return nil, s.logFault(err)
	}
	out := &dispatcherv1.GetOwnershipResponse{State: OwnerNone, Epoch: int64(o.Epoch)} //nolint:gosec // G115: a run has far fewer epochs
	if o.Owner == "" {
		last, err := s.deps.Log.Last(ctx, run)
		if err != nil {
			return nil, s.logFault(err)
		}
		out.Ended = last.Kind == subject.End
		return out, nil
	}
	r, err := s.leases.Lookup(ctx, o.Owner)
	if errors.Is(err, kv.ErrUnavailable) {
		return nil, fault.New(fault.ServiceUnavailable, "the dispatchers' leases cannot be read now; try again").After(retryUnavailable).Wrap(err)
	}
	out.Owner, out.Since, out.State = o.Owner, timestamp(o.Since), ownerState(r, err)
	if err == nil {
		out.Host = r.Host
	}
	if out.GetState() == OwnerOwned {
		out.ExpiresAt = timestamp(r.Until())
	}
	return out, nil
}

// ownerState returns the state of an owner by its lease. An owner without a lease was taken over.
func ownerState(r lease.Record, err error) string {
	switch {
	case err != nil || r.State == lease.Expired:
		return OwnerExpired
	case r.State == lease.Released:
		return OwnerReleased
	default:
		return OwnerOwned
	}
}
