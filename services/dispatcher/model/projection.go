package model

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// projectSchema puts the request's schema into the vendor's words. The answer comes back in
// them, too: see restore.
func (c *call) projectSchema() *wire.NodeError {
	s, ok := c.provider.(provider.Strict)
	if !ok || len(c.req.Schema) == 0 {
		return nil
	}
	p, problems := c.projections.compile(c.req.Schema, s.Dialect())
	if p == nil && !s.Insists() {
		return nil
	}
	if p == nil {
		return schemaNotAccepted(c.req.Provider, problems)
	}
	c.projection, c.req.Schema = p, p.Schema()
	return nil
}

// Check finds what keeps a node from ever being answered: a schema of its own that the
// provider it names cannot be held to, unless its model is held to none. What a run may still decide is not looked at.
func (l *Loop) Check(typeID string, raw json.RawMessage) *wire.NodeError {
	cfg, bad := l.configs.parse(raw)
	if bad != nil || typeID != node.TypeStructuredOutput || len(cfg.OutputSchema) == 0 {
		return nil // the node says it when it starts
	}
	p, _ := l.deps.Models.Lookup(cfg.Provider)
	s, ok := p.(provider.Strict)
	if !ok || !s.Insists() || l.deps.Catalogue.Unheld(cfg.Provider, cfg.Model) {
		return nil
	}
	if found, problems := l.projections.compile(cfg.OutputSchema, s.Dialect()); found == nil {
		return schemaNotAccepted(cfg.Provider, problems)
	}
	return nil
}

// schemaNotAccepted fails a node whose schema its provider cannot be told.
func schemaNotAccepted(id string, problems []projection.Problem) *wire.NodeError {
	return &wire.NodeError{
		Code: string(fault.SchemaNotAccepted), Message: "the schema cannot be put to the model: " + problemList(problems),
		Details: map[string]any{"provider": id},
	}
}

// problemList lists the reasons, so many that somebody can mend them.
func problemList(problems []projection.Problem) string {
	var parts []string
	for _, p := range problems[:min(len(problems), maxViolations)] {
		parts = append(parts, fmt.Sprintf("%s at %q: %s", p.Vendor, p.Path, p.Message))
	}
	return strings.Join(parts, "; ")
}

// restoreDocuments brings documents of a projected answer back to what the schema is about.
// One that is no answer under the projection stays: judging it says what is wrong.
func (c *call) restoreDocuments(docs []document) []document {
	if c.projection == nil {
		return docs
	}
	for i, d := range docs {
		if raw, err := c.projection.Restore(d.raw); err == nil {
			docs[i].raw = raw
		}
	}
	return docs
}

// projections remembers what schemas look like in a vendor's words, or why they cannot be
// said in them.
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

// size is that of the text: what is written out can be far longer than its source.
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

func (c *projections) compile(schema json.RawMessage, v projection.Vendor) (*projection.Projection, []projection.Problem) {
	found, _ := c.cache.getOrCompile(projectionKey{sha256.Sum256(schema), v}, func() (made projected, size int, err error) {
		made.projection, made.problems = projection.Compile(schema, v)
		return made, len(schema) + made.size(), nil
	})
	return found.projection, found.problems
}
