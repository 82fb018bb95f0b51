package engine

import (
	"context"
	"time"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// ListModelCapabilities lists required model capabilities and the models that have them.
func (s *Service) ListModelCapabilities(ctx context.Context, _ *hostv1.ListModelCapabilitiesRequest) (*hostv1.ListModelCapabilitiesResponse, error) {
	res, err := s.deps.Dispatcher.ListModelCapabilities(ctx, &dispatcherv1.ListModelCapabilitiesRequest{Tenant: auth.From(ctx).Tenant})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListModelCapabilitiesResponse{TrustsUnknown: res.GetTrustsUnknown()}
	for _, c := range res.GetCapabilities() {
		shown := &hostv1.ModelCapability{Id: c.GetId(), Enforced: len(c.GetRequiredBy()) > 0, RequiredBy: c.GetRequiredBy()}
		for _, m := range c.GetModels() {
			shown.Models = append(shown.Models, &hostv1.CapableModel{
				Provider: m.GetProvider(),
				Model:    m.GetModel(),
				OwnKey:   m.GetOwnKey(),
			})
		}
		out.Capabilities = append(out.Capabilities, shown)
	}
	return out, nil
}

// Time range of counted substitutions: default and maximum.
const (
	usualSpan   = time.Hour
	longestSpan = 24 * time.Hour
)

// ListModelSubstitutions counts model substitutions.
func (s *Service) ListModelSubstitutions(ctx context.Context, req *hostv1.ListModelSubstitutionsRequest) (*hostv1.ListModelSubstitutionsResponse, error) {
	now := s.deps.Clock()
	since := now.Add(-usualSpan)
	if req.Since != nil {
		var err error
		since, err = time.Parse(time.RFC3339, req.GetSince())
		if err != nil || since.Before(now.Add(-longestSpan)) {
			return nil, fault.InvalidQuery("since", "want a time of RFC 3339 within the last %s", longestSpan)
		}
	}
	res, err := s.deps.EventLog.ListSubstitutions(ctx, &eventlogv1.ListSubstitutionsRequest{
		Tenant: auth.From(ctx).Tenant, Since: since.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListModelSubstitutionsResponse{Since: res.GetSince()}
	for _, f := range res.GetSubstitutions() {
		out.Substitutions = append(out.Substitutions, &hostv1.ModelSubstitution{
			OriginalProvider:    f.GetOriginalProvider(),
			OriginalModel:       f.GetOriginalModel(),
			FallbackProvider:    f.GetFallbackProvider(),
			FallbackModel:       f.GetFallbackModel(),
			MissingCapabilities: f.GetMissing(),
			Count:               f.GetCount(),
			Runs:                f.GetRuns(),
			LastAt:              f.GetLastAt(),
			RunIds:              f.GetRunIds(),
		})
	}
	return out, nil
}
