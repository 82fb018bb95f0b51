package model

import (
	"slices"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// Offer is a model that nodes of a tenant can use.
type Offer struct {
	modelgate.Model
	// OwnKey means that it is only called with the tenant's own key.
	OwnKey bool
}

// Advertises reports whether the host's default model is known to have a capability: a node that
// requires it then needs no other model (RFC 0031 §E).
func (l *Loop) Advertises(id modelgate.Capability) bool {
	has, _ := l.hasCapability(modelgate.Model{Provider: l.cfg.Defaults.Provider, Model: l.cfg.Defaults.Model}, id)
	return has
}

// Capable returns the known models with a capability that a tenant may call: the host's default model,
// the fallbacks, and the catalogue's models of configured providers. A name with * is the pattern of a catalogue rule; it is left out if only some of
// its models are allowed. Fallbacks are left out for tenants that must not see them.
func (l *Loop) Capable(tenant string, id modelgate.Capability, fallbacks []modelgate.Model) []Offer {
	if l.cfg.RefusesSubstitution || l.cfg.HidesFallback != nil && l.cfg.HidesFallback(tenant) {
		fallbacks = nil
	}
	var out []Offer
	for _, m := range l.knownModels(fallbacks) {
		if has, _ := l.hasCapability(m, id); !has || m.Model == "" { // without a default model, each node names its own
			continue
		}
		o := Offer{Model: m, OwnKey: slices.Contains(l.cfg.TenantKeyed, m.Provider)}
		rule := l.deps.Policies.Of(tenant, m.Provider)
		if rule.Mode == modelgate.Required {
			o.OwnKey = true
		} else if l.denial(tenant, "", m) != nil {
			continue
		}
		out = append(out, o)
	}
	return out
}

// Models returns the catalogue.
func (l *Loop) Models() *catalogue.Catalogue { return l.deps.Catalogue }

// TrustsUnknown reports whether unknown capabilities count as present.
func (l *Loop) TrustsUnknown() bool { return l.cfg.TrustsUnknown }

// knownModels returns the default model, the fallbacks and the catalogue's models without
// duplicates.
func (l *Loop) knownModels(fallbacks []modelgate.Model) []modelgate.Model {
	out := append([]modelgate.Model{{Provider: l.cfg.Defaults.Provider, Model: l.cfg.Defaults.Model}}, fallbacks...)
	out = append(out, l.deps.Catalogue.Known()...)
	seen := map[modelgate.Model]bool{}
	return slices.DeleteFunc(out, func(m modelgate.Model) bool {
		was := seen[m]
		seen[m] = true
		return was
	})
}
