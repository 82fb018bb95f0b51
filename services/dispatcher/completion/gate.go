package completion

import (
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Gate decides whether a tenant's node may be dispatched to the model it would ask,
// and which one is asked if not (OpenWOP envelope contract §16.3).
func (l *Loop) Gate(tenant string, needs modelgate.Needs, in node.Input) (modelgate.Model, modelgate.Outcome) {
	cfg, bad := parseConfig(in.Config)
	if bad != nil {
		cfg = config{} // the node fails on it, once it starts
	}
	var o overlay
	_ = strictjson.Read(in.Configurable, &o) // checked at creation
	active := cfg.active(o, l.cfg.Defaults)
	return active, modelgate.Evaluate(needs, active, modelgate.Host{
		Substitutes:   true,
		HidesFallback: l.cfg.HidesFallback != nil && l.cfg.HidesFallback(tenant),
		Routes:        func(id string) bool { _, ok := l.deps.Models.Lookup(id); return ok },
		Has:           func(m modelgate.Model, id modelgate.Capability) bool { return provider.Can(l.deps.Models, m, id) },
	})
}

// substitute puts the model of the call in the place of the node's own if the gate
// said so when the node was dispatched. The log has the decision; only the names that
// it withholds are asked of the gate again.
func (l *Loop) substitute(t Task, req *provider.Request) *wire.NodeError {
	if t.Fallback == nil {
		return nil
	}
	asked := *t.Fallback
	if asked.Provider == modelgate.Withheld && t.Needs != nil {
		_, o := l.Gate(t.Tenant, *t.Needs, t.Input)
		if o.Route != modelgate.Substitute {
			return &wire.NodeError{
				Code: string(fault.CapabilityNotProvided), Message: "the model that was to be asked instead of the node's own can be asked no more",
			}
		}
		asked = o.Asked
	}
	req.Provider, req.Model = asked.Provider, asked.Model
	return nil
}

// Offers reports whether some model that can be asked has a capability.
func (l *Loop) Offers(id modelgate.Capability) bool {
	for _, p := range l.deps.Models.IDs() {
		if provider.Can(l.deps.Models, modelgate.Model{Provider: p}, id) {
			return true
		}
	}
	return false
}
