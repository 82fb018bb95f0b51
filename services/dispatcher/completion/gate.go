package completion

import (
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Gate decides whether a node may be dispatched to the model it would ask. This host
// swaps no model of a call, so it never substitutes (OpenWOP envelope contract §16.3).
func (l *Loop) Gate(needs modelgate.Needs, in node.Input) (modelgate.Model, modelgate.Outcome) {
	cfg, bad := parseConfig(in.Config)
	if bad != nil {
		cfg = config{} // the node fails on it, once it starts
	}
	var o overlay
	_ = strictjson.Read(in.Configurable, &o) // checked at creation
	active := cfg.active(o, l.cfg.Defaults)
	return active, modelgate.Evaluate(needs, active, modelgate.Host{
		Routes: func(id string) bool { _, ok := l.deps.Models.Lookup(id); return ok },
		Has:    func(m modelgate.Model, id modelgate.Capability) bool { return provider.Can(l.deps.Models, m, id) },
	})
}
