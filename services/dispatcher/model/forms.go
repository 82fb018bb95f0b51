package model

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// A server may refuse the form in which it gets a schema. The next form is tried then, down to the
// schema in words. Whatever the form, the host validates the answer.

// enforced reports whether a form is strict.
func enforced(form provider.SchemaVia) bool {
	return form == provider.ViaFormat || form == provider.ViaTool
}

// schemaFormsOf returns the forms of a request's schema, beginning with the catalogue's.
func schemaFormsOf(p provider.Provider, req provider.Request) []provider.SchemaVia {
	forms := []provider.SchemaVia{req.Via}
	s, ok := p.(provider.SchemaForms)
	if !ok || len(req.Schema) == 0 {
		return forms
	}
	all := s.SchemaForms(req.Model)
	for _, form := range all[slices.Index(all, req.Via)+1:] {
		if form != provider.ViaObject || isObjectSchema(req.Schema) {
			forms = append(forms, form)
		}
	}
	return forms
}

// looseForm returns the strictest form with the schema in the prompt.
func looseForm(p provider.Provider, req provider.Request) provider.SchemaVia {
	if s, ok := p.(provider.SchemaForms); ok && isObjectSchema(req.Schema) && slices.Contains(s.SchemaForms(req.Model), provider.ViaObject) {
		return provider.ViaObject
	}
	return provider.ViaWords
}

// isObjectSchema reports whether every valid value is an object.
func isObjectSchema(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return strictjson.Read(schema, &s) == nil && s.Type == "object"
}

// inForm returns the request with its schema in a form, and the conversion of its answer.
func (e *emission) inForm(
	req provider.Request, form provider.SchemaVia,
) (provider.Request, *projection.Projection) {
	req.Via = form
	if len(req.Schema) > 0 && !enforced(form) {
		req.System += "\n\nJSON Schema of the document:\n" + string(req.Schema)
		req.Schema = nil
	}
	sent, projected, bad := e.projectSchema(&e.task, e.provider, req)
	if bad != nil { // not with the dialect of the first form
		return req, nil
	}
	return sent, projected
}

// invocationTarget identifies what a call is sent to. Forms are different requests, so a server that
// stores answers must not answer one with another's.
func (e *emission) invocationTarget(req provider.Request) string {
	target := req.Provider + ":" + req.Model
	if req.Via != e.schemaForms[0] {
		target += ":" + req.Via.Name()
	}
	return target
}

// nextForm returns the strictest of the forms that is not known to be refused.
func (e *emission) nextForm(forms []provider.SchemaVia) provider.SchemaVia {
	return e.refusedForms.next(e.formKey(), forms, e.deps.Clock())
}

// canStepDown reports whether an error refuses a form and another one is left.
func (e *emission) canStepDown(err error, form provider.SchemaVia) bool {
	pe, ok := provider.As(err)
	return ok && pe.Code == provider.CodeSchemaInvalid && form != e.schemaForms[len(e.schemaForms)-1]
}

// rememberRefusals remembers the forms that the server refused before it answered another one.
func (e *emission) rememberRefusals(forms []provider.SchemaVia) {
	for _, form := range forms {
		e.refusedForms.add(e.formKey(), form, e.deps.Clock())
	}
}

// logRefusal logs that the server refused a form. The others follow it.
func (e *emission) logRefusal(form provider.SchemaVia, others []provider.SchemaVia) {
	e.deps.Logger.LogAttrs(context.Background(), slog.LevelWarn, "schema form refused",
		slog.String("tenant", e.task.Tenant),
		slog.String("run_id", e.task.RunID),
		slog.String("node_id", e.task.Input.NodeID),
		slog.String("provider", e.request.Provider),
		slog.String("model", e.request.Model),
		slog.String("refused", form.Name()),
		slog.String("next", e.nextForm(others).Name()),
	)
}

// recordForm records the form of an answered call if it is not the model's own. The event names no
// model: it may be withheld from the run's readers.
func (e *emission) recordForm(ctx context.Context, a answer) *Result {
	if a.form == e.schemaForms[0] && !e.expected.inWords || a.shown {
		return nil
	}
	message, refused := "the model's vendor cannot express the response schema; it was sent as "+a.form.Name(), []string{}
	for _, form := range e.schemaForms[:slices.Index(e.schemaForms, a.form)] {
		refused = append(refused, form.Name())
	}
	if len(refused) > 0 {
		message = fmt.Sprintf("the model's server does not accept the response schema as %s; it was sent as %s",
			strings.Join(refused, " or "), a.form.Name())
	}
	err := e.journal.Record(ctx, draft(wire.EventLogAppended, e.task.Input.NodeID, wire.Trusted, discardedPayload{
		Level:   "warn",
		Message: message,
		NodeID:  e.task.Input.NodeID,
		Fields:  map[string]any{"reason": wire.ReasonSchemaForm, "schemaForm": a.form.Name(), "refused": refused},
	}))
	if err != nil {
		return &Result{Interrupted: err}
	}
	return nil
}

const (
	// formKept is how long a refused form is remembered.
	formKept = time.Hour
	// maxForms limits the remembered refusals.
	maxForms = 1024
)

// formKey identifies what a refused form applies to: a model, or one of its schemas.
type formKey struct {
	provider, model string
	// schema is the digest of a schema. It is set for vendors that are known to have all their
	// forms, so that a refusal is about the schema.
	schema [sha256.Size]byte
}

func (e *emission) formKey() formKey {
	k := formKey{provider: e.request.Provider, model: e.request.Model}
	if v := e.dialectOf(e.provider, k.model); v != "" && v != projection.AsWritten {
		k.schema = sha256.Sum256(e.request.Schema)
	}
	return k
}

// refusedForms remembers the forms that servers refused. It is safe for concurrent use.
type refusedForms struct {
	mu   sync.Mutex                                   // guards all below
	byID map[formKey]map[provider.SchemaVia]time.Time // when a refusal is forgotten
}

// next returns the first form that is not known to be refused, else the last.
func (r *refusedForms) next(k formKey, forms []provider.SchemaVia, now time.Time) provider.SchemaVia {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, form := range forms {
		if !now.Before(r.byID[k][form]) {
			return form
		}
	}
	return forms[len(forms)-1]
}

// add remembers a refusal. If there are too many, outdated ones are dropped first, then all.
func (r *refusedForms) add(k formKey, form provider.SchemaVia, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[k] == nil && len(r.byID) >= maxForms {
		maps.DeleteFunc(r.byID, func(_ formKey, until map[provider.SchemaVia]time.Time) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Values(until)), now.Before)
		})
		if len(r.byID) >= maxForms {
			r.byID = nil
		}
	}
	if r.byID == nil {
		r.byID = map[formKey]map[provider.SchemaVia]time.Time{}
	}
	if r.byID[k] == nil {
		r.byID[k] = map[provider.SchemaVia]time.Time{}
	}
	r.byID[k][form] = now.Add(formKept)
}
