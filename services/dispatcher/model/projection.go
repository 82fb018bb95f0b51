package model

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// projectSchema converts a request's schema to the dialect of its model, and records the conversion of
// answers. restoreDocuments converts the answer back.
func (l *Loop) projectSchema(
	t *Task, p provider.Provider, req provider.Request,
) (provider.Request, *projection.Projection, *wire.NodeError) {
	v := l.dialectOf(p, req.Model)
	switch {
	case v == "" || len(req.Schema) == 0 || !enforced(req.Via):
		return req, nil, nil
	case v == projection.AsWritten:
		req.AsWritten = true
		if req.Via != provider.ViaTool {
			return req, nil, nil
		}
		wrapped := projection.Wrap(req.Schema)
		if wrapped != nil {
			req.Schema = wrapped.Schema()
		}
		return req, wrapped, nil
	}
	projected, problems := l.projections.compile(req.Schema, v)
	if projected == nil {
		bad := schemaNotAccepted(t.shownModel(req, provider.Result{}).Provider, problems)
		if t.withholdsModel() {
			bad.Message = "the schema cannot be put to the model" // the problems name its vendor
		}
		return req, nil, bad
	}
	req.Schema = projected.Schema()
	return req, projected, nil
}

// dialectOf returns the dialect of a model: the one in the catalogue, else its provider's; empty for a
// provider without one.
func (l *Loop) dialectOf(p provider.Provider, model string) projection.Vendor {
	s, ok := p.(provider.Strict)
	if !ok {
		return ""
	}
	if e, ok := l.deps.Catalogue.Lookup(p.ID(), model); ok && e.SchemaDialect != "" {
		return projection.Vendor(e.SchemaDialect)
	}
	return s.Dialect(model)
}

// Check returns why a node can never be answered: its schema cannot be converted for the provider
// that it names. Models without schema enforcement are exempt. Choices that a run can still make
// are not checked.
func (l *Loop) Check(typeID string, raw json.RawMessage) *wire.NodeError {
	cfg, bad := l.configs.parse(raw)
	if bad != nil || typeID != node.TypeStructuredOutput || len(cfg.OutputSchema) == 0 {
		return nil // the node fails when it starts
	}
	p, ok := l.deps.Models.Lookup(cfg.Provider)
	if !ok || l.deps.Catalogue.WithoutSchema(cfg.Provider, cfg.Model) {
		return nil
	}
	v := l.dialectOf(p, cfg.Model)
	if v == "" || v == projection.AsWritten {
		return nil
	}
	if found, problems := l.projections.compile(cfg.OutputSchema, v); found == nil {
		return schemaNotAccepted(cfg.Provider, problems)
	}
	return nil
}

// schemaNotAccepted fails a node whose schema its provider does not support.
func schemaNotAccepted(id string, problems []projection.Problem) *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.SchemaNotAccepted),
		Message: "the schema cannot be put to the model: " + problemList(problems),
		Details: map[string]any{"provider": id},
	}
}

// problemList lists the first problems.
func problemList(problems []projection.Problem) string {
	var parts []string
	for _, p := range problems[:min(len(problems), maxViolations)] {
		parts = append(parts, fmt.Sprintf("%s at %q: %s", p.Vendor, p.Path, p.Message))
	}
	return strings.Join(parts, "; ")
}

// extract finds the documents of an answer, in the original schema. A node can ask that broken JSON is
// repaired.
func (e *emission) extract(a answer) extraction {
	x := extract(a.Text)
	x.thought = x.thought || a.Thought && strings.TrimSpace(a.Text) == ""
	if e.repairs {
		if d, ok := x.repair(a.Text); ok {
			x.documents = []document{d}
		}
	}
	x = e.withoutCalls(e.withoutEchoes(a.Text, x))
	x.documents = a.restoreDocuments(x.documents)
	return x
}

// restoreDocuments converts documents of a projected answer back to the original schema. A document
// that does not match the projection stays unchanged, and validation reports what is wrong.
func (a answer) restoreDocuments(docs []document) []document {
	if a.projection == nil {
		return docs
	}
	for i, d := range docs {
		if raw, err := a.projection.Restore(d.raw); err == nil {
			docs[i].raw = raw
		}
	}
	return docs
}

// projections caches schemas converted to a vendor's dialect, or the problems.
type projections struct {
	cache[projectionKey, projected]
}

type projectionKey struct {
	schema [sha256.Size]byte
	vendor projection.Vendor
}

type projected struct {
	projection *projection.Projection
	problems   []projection.Problem
}

// size returns the size of the text, which can be far larger than its source.
func (p projected) size() int {
	n := 0
	if p.projection != nil {
		n = len(p.projection.Schema())
	}
	for _, found := range p.problems {
		n += len(found.Path) + len(found.Message)
	}
	return n
}

func (c *projections) compile(
	schema json.RawMessage, v projection.Vendor,
) (*projection.Projection, []projection.Problem) {
	found, _ := c.getOrCompile(projectionKey{sha256.Sum256(schema), v}, func() (made projected, size int, err error) {
		made.projection, made.problems = projection.Compile(schema, v)
		return made, len(schema) + made.size(), nil
	})
	return found.projection, found.problems
}
