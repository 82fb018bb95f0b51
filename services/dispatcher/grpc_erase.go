package dispatcher

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// newEraser returns the eraser of runs; nil if the log has none.
func (s *Service) newEraser() *retention.Eraser {
	d := s.deps
	if d.Erasures == nil {
		return nil
	}
	steps := []retention.EraseStep{s.releaseScope}
	if d.Cleartext != nil {
		steps = append(steps, func(ctx context.Context, r subject.Run, _ []*frame.Frame) error { return d.Cleartext.Erase(ctx, r) })
	}
	if d.EraseRecords != nil {
		steps = append(steps, d.EraseRecords)
	}
	return retention.NewEraser(d.Log, d.Erasures, d.Logger, s.metrics.Erased, steps...)
}

// releaseScope deletes the dedup record of an erased run.
func (s *Service) releaseScope(ctx context.Context, r subject.Run, frames []*frame.Frame) error {
	if len(frames) == 0 {
		return nil // an earlier attempt has deleted it
	}
	rec, err := frames[0].Record()
	if err != nil {
		return nil //nolint:nilerr // the record is damaged, so its scope is unknown
	}
	return s.starter.ReleaseScope(ctx, r.Tenant, rec)
}

// EraseRun marks a run as erased, so that everything that belongs to it is removed.
func (s *Service) EraseRun(ctx context.Context, req *dispatcherv1.EraseRunRequest) (*dispatcherv1.EraseRunResponse, error) {
	if s.eraser == nil {
		return nil, fault.New(fault.CapabilityNotProvided, "this host cannot erase runs")
	}
	erased, err := s.eraser.Erase(ctx, subject.Run{Tenant: req.GetTenant(), RunID: req.GetRunId()}, frame.Requested)
	if err != nil {
		return nil, s.logFault(err)
	}
	return &dispatcherv1.EraseRunResponse{Erased: erased}, nil
}
