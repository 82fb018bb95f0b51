package dispatcher

import (
	"context"
	"slices"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// ListModelCapabilities returns the capabilities that node types require and the models that have
// them: first the protocol's, then the host's own required ones.
func (s *Service) ListModelCapabilities(_ context.Context, req *dispatcherv1.ListModelCapabilitiesRequest) (*dispatcherv1.ListModelCapabilitiesResponse, error) {
	requiredBy := map[modelgate.Capability][]string{}
	var (
		own       []modelgate.Capability
		fallbacks []modelgate.Model
	)
	ids := catalogue.Capabilities()
	types := s.types.Current()
	for _, typeID := range types.IDs() {
		needs := types[typeID].Needs
		if needs == nil {
			continue
		}
		if needs.Fallback != nil {
			fallbacks = append(fallbacks, *needs.Fallback)
		}
		for _, id := range needs.Required {
			if !slices.Contains(ids, id) && !slices.Contains(own, id) {
				own = append(own, id)
			}
			requiredBy[id] = append(requiredBy[id], typeID)
		}
	}
	slices.Sort(own)
	out := &dispatcherv1.ListModelCapabilitiesResponse{TrustsUnknown: s.loop.TrustsUnknown()}
	for _, id := range append(ids, own...) {
		c := &dispatcherv1.ModelCapability{Id: id, RequiredBy: requiredBy[id]}
		for _, m := range s.loop.Capable(req.GetTenant(), id, fallbacks) {
			c.Models = append(c.Models, &dispatcherv1.CapableModel{Provider: m.Provider, Model: m.Model.Model, OwnKey: m.OwnKey})
		}
		out.Capabilities = append(out.Capabilities, c)
	}
	return out, nil
}
