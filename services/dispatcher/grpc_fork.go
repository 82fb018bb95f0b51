package dispatcher

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
)

// ForkRun creates a fork of a run.
func (s *Service) ForkRun(ctx context.Context, req *dispatcherv1.ForkRunRequest) (*dispatcherv1.ForkRunResponse, error) {
	leave, err := s.intake.Enter(s.parked(req.GetTenant()))
	if err != nil {
		return nil, err
	}
	defer leave()
	over := create.Overlay{Configurable: req.GetConfigurable(), Metadata: req.GetMetadata()}
	if req.GetSetsTags() {
		tags := req.GetTags()
		over.Tags = &tags
	}
	f, err := s.starter.Fork(ctx, create.Fork{
		Tenant: req.GetTenant(), SourceRunID: req.GetSourceRunId(), RunID: req.GetRunId(),
		Digest: req.GetRequestDigest(), Mode: wire.ForkMode(req.GetMode()), FromSeq: int(req.GetFromSeq()), Overlay: over,
		TestKey: req.GetTestKey(), Traceparent: req.GetTraceparent(),
	})
	if err != nil {
		return nil, s.unlessLoading(err)
	}
	return &dispatcherv1.ForkRunResponse{
		RunId: f.RunID, Status: string(wire.StatusPending), Replayed: f.Replayed,
		FromSeq:      int32(f.Fork.FromSeq), //nolint:gosec // G115: it was given as one
		BeginDelayMs: s.beginDelay(),
	}, nil
}
