package engine

import (
	"context"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// GetDebugBundle exports the debug bundle of a run (OpenWOP host contract §10.4).
func (s *Service) GetDebugBundle(ctx context.Context, req *hostv1.GetDebugBundleRequest) (*hostv1.GetDebugBundleResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	if req.MaxEvents != nil && req.GetMaxEvents() < 1 {
		return nil, fault.InvalidQuery("maxEvents", "want an integer of at least 1")
	}
	doc, err := s.deps.Bundles.Export(ctx, auth.From(ctx).Tenant, req.GetRunId(), req.GetMaxEvents())
	if err != nil {
		return nil, err
	}
	if err := s.recordAudit(ctx, "bundle.exported", "runs/"+req.GetRunId(), nil); err != nil {
		return nil, err
	}
	setMeta(ctx, MetaCache, "no-store")
	return &hostv1.GetDebugBundleResponse{Bundle: &openwopv1.JsonDocument{Json: doc}}, nil
}
