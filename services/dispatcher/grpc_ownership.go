package dispatcher

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// The states of an ownership.
const (
	OwnerNone     = "none"
	OwnerOwned    = "owned"
	OwnerReleased = "released"
	OwnerExpired  = "expired"
	// OwnerUnknown is the answer of a host that does not record owners.
	OwnerUnknown = "unknown"
)

// Ownership says which dispatcher owns a run.
type Ownership struct {
	// State is one of the above.
	State string
	// Owner is the id of the dispatcher process, and Host its host name; empty if unknown.
	Owner, Host string
	// Epoch counts the owners of the run.
	Epoch int64
	// Since is when it became the owner, and ExpiresAt when its lease expires unless it is
	// renewed; zero if unknown.
	Since, ExpiresAt time.Time
}

// Owners finds the owners of runs.
type Owners interface {
	// Of finds the owner of a run that exists.
	Of(ctx context.Context, r subject.Run) (Ownership, error)
}

// GetOwnership says which dispatcher owns a run.
func (s *Service) GetOwnership(ctx context.Context, req *dispatcherv1.GetOwnershipRequest) (*dispatcherv1.GetOwnershipResponse, error) {
	r := subject.Run{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	last, err := s.deps.Log.Last(ctx, r)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, fault.New(fault.RunNotFound, "no run of this id in your tenant")
	}
	if err != nil {
		return nil, s.asFault(err)
	}
	if s.deps.Owners == nil {
		return &dispatcherv1.GetOwnershipResponse{State: OwnerUnknown}, nil
	}
	o, err := s.deps.Owners.Of(ctx, last.Run)
	if err != nil {
		return nil, s.asFault(err)
	}
	return &dispatcherv1.GetOwnershipResponse{
		State: o.State, Owner: o.Owner, Host: o.Host, Epoch: o.Epoch, Since: timestamp(o.Since), ExpiresAt: timestamp(o.ExpiresAt),
	}, nil
}
