package model

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// otherModels returns the models to call if the node's own fails: the node's list, else that of its
// provider.
func (l *Loop) otherModels(cfg config, own string) []modelgate.Model {
	names := cfg.OnError.Models
	if names == nil {
		names = l.cfg.Providers.For(own).OnError.Models
	}
	out := make([]modelgate.Model, 0, len(names))
	for _, name := range names {
		id, model, _ := strings.Cut(name, "/")
		out = append(out, modelgate.Model{Provider: id, Model: model})
	}
	return out
}

// checkOthers returns what is wrong with the node's own list.
func (c config) checkOthers() *wire.NodeError {
	switch i, problem := c.OnError.Check(); {
	case problem == "":
		return nil
	case i < 0:
		return node.Invalid("/config/onError/models: %s", problem)
	default:
		return node.Invalid("/config/onError/models/%d: %s", i, problem)
	}
}

// orNext returns the model that the log says is called instead of the node's own. If its name is
// withheld from the log, it is found by its index.
func (l *Loop) orNext(own modelgate.Model, cfg config, next *wire.NextModel) modelgate.Model {
	if next == nil {
		return own
	}
	if next.Provider != modelgate.Withheld {
		return modelgate.Model{Provider: next.Provider, Model: next.Model}
	}
	if list := l.otherModels(cfg, own.Provider); next.Index >= 0 && next.Index < len(list) {
		return list[next.Index]
	}
	return own // the list has changed
}

// callsNext reports whether another model may answer after a failure: the vendor failed, cannot be
// reached, or has no room or quota. Failures of the request itself are the same everywhere.
func callsNext(e *wire.NodeError) bool {
	return e.Code == provider.CodeQuota || e.Code == string(fault.ProviderUnavailable) && e.Retryable
}

// nextModel returns the next model of the list that may be called for this node and tenant. It passes each
// decision to log.
func (e *emission) nextModel(log func(m modelgate.Model, why string)) *wire.NextModel {
	first := 0
	if n := e.task.Input.Next; n != nil {
		first = n.Index + 1
	}
	for i := max(first, 0); i < len(e.others); i++ {
		m := e.others[i]
		why := e.whyNot(m)
		log(m, why)
		switch {
		case why != "":
		case e.cfg.HidesFallback != nil && e.cfg.HidesFallback(e.task.Tenant):
			return &wire.NextModel{Index: i, Provider: modelgate.Withheld, Model: modelgate.Withheld}
		default:
			return &wire.NextModel{Index: i, Provider: m.Provider, Model: m.Model}
		}
	}
	return nil
}

// hasNext reports whether another model can be called if the current one has no capacity.
func (e *emission) hasNext() bool {
	return e.nextModel(func(modelgate.Model, string) {}) != nil
}

// whyNot returns why a model of the list is not called; empty if it is. The next attempt passes the
// policy and the gate again.
func (e *emission) whyNot(m modelgate.Model) string {
	switch {
	case m.Provider == e.request.Provider && m.Model == e.request.Model:
		return "it has failed itself"
	case !e.canRoute(e.task, m.Provider):
		return "its provider is not configured, or there is no key for it"
	case e.denial(e.task.Tenant, e.task.CredentialRef, m) != nil:
		return "a policy forbids it"
	case len(e.missing(m)) > 0:
		return "it lacks " + strings.Join(e.missing(m), ", ")
	case !e.takesSchema(m):
		return "its vendor cannot express the schema"
	}
	return ""
}

// missing returns the capabilities that the node requires and a model lacks.
func (e *emission) missing(m modelgate.Model) []modelgate.Capability {
	if e.task.Needs == nil {
		return nil
	}
	o := modelgate.Evaluate(modelgate.Needs{Required: e.task.Needs.Required}, m, modelgate.Host{
		TrustsUnknown: e.cfg.TrustsUnknown, Has: e.hasCapability,
	})
	if o.Route == modelgate.Dispatch {
		return nil
	}
	return slices.Clone(o.Missing)
}

// takesSchema reports whether the schema can be sent to a model. Those of envelopes can be sent in words.
func (e *emission) takesSchema(m modelgate.Model) bool {
	req := e.request
	req.Provider, req.Model, req.Via = m.Provider, m.Model, provider.ViaFormat
	p, ok := e.deps.Models.Lookup(m.Provider)
	if !ok || e.expected.value == nil {
		return ok
	}
	fitted, _ := e.fitToModel(req)
	_, _, bad := e.projectSchema(&e.task, p, fitted)
	return bad == nil
}

// logNext logs the decision about a model of the list.
func (e *emission) logNext(m modelgate.Model, why string) {
	attrs := []slog.Attr{
		slog.String("tenant", e.task.Tenant),
		slog.String("run_id", e.task.RunID),
		slog.String("node_id", e.task.Input.NodeID),
		slog.String("failed", e.request.Provider+"/"+e.request.Model),
		slog.String("next", m.Provider+"/"+m.Model),
	}
	msg := "model failed; another is called"
	if why != "" {
		msg, attrs = "model failed; another is not called", append(attrs, slog.String("why", why))
	}
	e.deps.Logger.LogAttrs(context.Background(), slog.LevelWarn, msg, attrs...)
}
