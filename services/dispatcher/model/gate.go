package model

import (
	"context"
	"log/slog"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Gate decides whether a tenant's node may be dispatched to the model it would ask,
// and which one is asked if not (OpenWOP envelope contract §16.3). The ref is that of
// the run's own keys; empty: it has none.
func (l *Loop) Gate(tenant, credentialRef string, needs modelgate.Needs, in node.Input) (modelgate.Model, modelgate.Outcome) {
	active := l.activeModel(in)
	out := modelgate.Evaluate(needs, active, modelgate.Host{
		Substitutes: true, TrustsUnknown: l.cfg.TrustsUnknown,
		HidesFallback: l.cfg.HidesFallback != nil && l.cfg.HidesFallback(tenant),
		Routes: func(m modelgate.Model) bool {
			t := Task{Tenant: tenant, CredentialRef: credentialRef, Input: in}
			return l.canRoute(t, m.Provider) && l.denial(tenant, credentialRef, m) == nil
		},
		Has: l.hasCapability,
	})
	out.Catalogue = l.deps.Catalogue.Digest()
	l.logDecision(tenant, in.NodeID, active, out)
	return active, out
}

// activeModel is the model that a node would ask. A config that cannot be read is as none:
// the node fails on it, once it starts.
func (l *Loop) activeModel(in node.Input) modelgate.Model {
	cfg, bad := l.configs.parse(in.Config)
	if bad != nil {
		cfg = config{}
	}
	var o overlay
	_ = strictjson.Read(in.Configurable, &o) // checked at creation
	return cfg.activeModel(o, l.cfg.Defaults)
}

// canRoute reports whether a provider can be asked for a task: it is there, and so is a
// key, the tenant's or the host's.
func (l *Loop) canRoute(t Task, id string) bool {
	if _, ok := l.deps.Models.Lookup(id); !ok {
		return false
	}
	var o overlay
	_ = strictjson.Read(t.Input.Configurable, &o) // checked at creation
	key, bad := l.tenantKey(t, id, o)
	return bad == nil && (key != "" || !slices.Contains(l.cfg.TenantKeyed, id))
}

// hasCapability asks the catalogue. A provider that is not there has nothing.
func (l *Loop) hasCapability(m modelgate.Model, id modelgate.Capability) (has, known bool) {
	if _, ok := l.deps.Models.Lookup(m.Provider); !ok {
		return false, true
	}
	return l.deps.Catalogue.Has(m, id)
}

// logDecision logs a decision with the catalogue that it was made by. That a node is refused is a warning:
// its operator has either to name another model or to say more of this one.
func (l *Loop) logDecision(tenant, nodeID string, active modelgate.Model, o modelgate.Outcome) {
	level := slog.LevelInfo
	if o.Route == modelgate.Refuse {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("tenant", tenant), slog.String("node_id", nodeID), slog.String("route", string(o.Route)), slog.String("provider", active.Provider),
		slog.String("model", active.Model), slog.Any("missing", o.Missing), slog.Bool("unknown", o.Unknown), slog.String("catalogue", o.Catalogue),
	}
	if o.Route == modelgate.Substitute && !o.Hidden {
		attrs = append(attrs, slog.String("asked", o.Asked.Provider+"/"+o.Asked.Model))
	}
	l.deps.Logger.LogAttrs(context.Background(), level, "model gate", attrs...)
}

// substitute puts the model of the call in the place of the node's own if the gate
// said so when the node was dispatched. The log has the decision; the names that it
// withholds are those of the node's type.
func (l *Loop) substitute(t Task, req *provider.Request) *wire.NodeError {
	if t.Fallback == nil {
		return nil
	}
	asked := *t.Fallback
	if asked.Provider == modelgate.Withheld {
		if t.Needs == nil || t.Needs.Fallback == nil {
			return &wire.NodeError{
				Code: string(fault.CapabilityNotProvided), Message: "the model that was to be asked instead of the node's own is not known any more: its pack has changed",
			}
		}
		asked = *t.Needs.Fallback // there is no second one
	}
	req.Provider, req.Model = asked.Provider, asked.Model
	return nil
}
