package model

import (
	"slices"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/catalogue"
)

// Offer is a model that a tenant's nodes can be dispatched to.
type Offer struct {
	modelgate.Model
	// OwnKey says that it is asked with the tenant's own key only.
	OwnKey bool
}

// Offers reports whether some model that can be asked is known to have a capability:
// the host's own, one that a node falls back to, or one that the catalogue knows of a
// provider that is there.
func (l *Loop) Offers(id modelgate.Capability, fallback *modelgate.Model) bool {
	var fallbacks []modelgate.Model
	if fallback != nil {
		fallbacks = append(fallbacks, *fallback)
	}
	return slices.ContainsFunc(l.knownModels(fallbacks), func(m modelgate.Model) bool {
		has, _ := l.hasCapability(m, id)
		return has
	})
}

// Capable are the models that Offers looks at, those that have a capability and that a
// tenant may ask; a name with * is the pattern of a rule of the catalogue, and is left out
// where only some of its models may be asked. The fallbacks are left out for a tenant that
// is not told of them.
func (l *Loop) Capable(tenant string, id modelgate.Capability, fallbacks []modelgate.Model) []Offer {
	if l.cfg.HidesFallback != nil && l.cfg.HidesFallback(tenant) {
		fallbacks = nil
	}
	var out []Offer
	for _, m := range l.knownModels(fallbacks) {
		if has, _ := l.hasCapability(m, id); !has || m.Model == "" { // no model: each node names its own
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

// Models is what is known of models.
func (l *Loop) Models() *catalogue.Catalogue { return l.deps.Catalogue }

// TrustsUnknown says that what is not known of a model counts as there.
func (l *Loop) TrustsUnknown() bool { return l.cfg.TrustsUnknown }

// knownModels are the models that there is a name of, each once.
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
