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
)

// Gate decides whether a node may run with its model, and which model replaces it if not (OpenWOP
// envelope contract §16.3). credentialRef names the run's own key; empty means none.
func (l *Loop) Gate(
	tenant, credentialRef string, needs modelgate.Needs, in node.Input,
) (modelgate.Model, modelgate.Outcome) {
	active := l.activeModel(in)
	out := modelgate.Evaluate(needs, active, modelgate.Host{
		Substitutes: !l.cfg.RefusesSubstitution, TrustsUnknown: l.cfg.TrustsUnknown,
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

// activeModel returns the node's model, or the one that is called because that failed. An unreadable config counts as empty: the node fails on it
// when it starts.
func (l *Loop) activeModel(in node.Input) modelgate.Model {
	cfg, bad := l.configs.parse(in.Config)
	if bad != nil {
		cfg = config{}
	}
	var o overlay
	_ = strictjson.Read(in.Configurable, &o) // checked at creation
	return l.orNext(cfg.activeModel(o, l.cfg.Defaults), cfg, in.Next)
}

// canRoute reports whether a provider exists and a key for it is available, the tenant's or the
// host's.
func (l *Loop) canRoute(t Task, id string) bool {
	if _, ok := l.deps.Models.Lookup(id); !ok {
		return false
	}
	var o overlay
	_ = strictjson.Read(t.Input.Configurable, &o) // checked at creation
	key, bad := l.tenantKey(t, id, o)
	return bad == nil && (key != "" || !slices.Contains(l.cfg.TenantKeyed, id))
}

// hasCapability looks a capability up in the catalogue. A missing provider has none.
func (l *Loop) hasCapability(m modelgate.Model, id modelgate.Capability) (has, known bool) {
	if _, ok := l.deps.Models.Lookup(m.Provider); !ok {
		return false, true
	}
	return l.deps.Catalogue.Has(m, id)
}

// logDecision logs a gate decision with the digest of the catalogue. A refusal is a warning: the
// operator has to name another model or add this one to the catalogue.
func (l *Loop) logDecision(tenant, nodeID string, active modelgate.Model, o modelgate.Outcome) {
	level := slog.LevelInfo
	if o.Route == modelgate.Refuse {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("tenant", tenant),
		slog.String("node_id", nodeID),
		slog.String("route", string(o.Route)),
		slog.String("provider", active.Provider),
		slog.String("model", active.Model),
		slog.Any("missing", o.Missing),
		slog.Bool("unknown", o.Unknown),
		slog.String("catalogue", o.Catalogue),
	}
	if o.Route == modelgate.Substitute && !o.Hidden {
		attrs = append(attrs, slog.String("asked", o.Asked.Provider+"/"+o.Asked.Model))
	}
	l.deps.Logger.LogAttrs(context.Background(), level, "model gate", attrs...)
}

// substitute replaces the node's model by the fallback that the gate recorded when the node was
// dispatched. A fallback withheld from the log is read from the node's type.
func substitute(t Task, own modelgate.Model) (modelgate.Model, *wire.NodeError) {
	switch {
	case t.Fallback == nil:
		return own, nil
	case t.Fallback.Provider != modelgate.Withheld:
		return *t.Fallback, nil
	case t.Needs == nil || t.Needs.Fallback == nil:
		return own, &wire.NodeError{
			Code: string(fault.CapabilityNotProvided),
			Message: "the model that was to be asked instead of the node's own is not known any more: " +
				"its pack has changed",
		}
	default:
		return *t.Needs.Fallback, nil // a type has one fallback at most
	}
}
