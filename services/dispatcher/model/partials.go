package model

import (
	"bytes"
	"context"
	"encoding/json"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// While an answer arrives, the part of its payload that is complete and valid is recorded with the
// chunk that completed it, in the form of a partial envelope (OpenWOP envelope contract §2,
// PartialInfo). It is a preview: it is made of the redacted text, and decides nothing.

// growth are the members of an output.chunk event with a partial payload.
type growth struct {
	EnvelopeType string          `json:"envelopeType,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	Partial      *partialInfo    `json:"partial,omitempty"`
}

// partialInfo counts the partials of a call.
type partialInfo struct {
	IsPartial bool `json:"isPartial"`
	Index     int  `json:"index"`
	Total     int  `json:"total"` // -1 for unknown
}

// Limits of the partials of a call.
const (
	// maxPartial limits a payload, and the text before it, in bytes.
	maxPartial = 64 << 10
	// minGrowth is the least text between two partials, in bytes.
	minGrowth = 32
	// growthShare limits all partials of a call to that many times its text, and freePartials. The text
	// grows by that share of itself between two of them.
	growthShare  = 8
	freePartials = 4 << 10
)

// partials makes the partials of a call.
type partials struct {
	// kinds are the schemas of the payloads, by kind; empty names the node's output schema.
	kinds     map[string]*schema.Schema
	requested string
	// named are the names that are kinds of envelopes.
	named      func(kind string) bool
	declares   bool
	projection *projection.Projection
	budget     *schema.Budget

	text []byte
	// tried is the size of the text at the last attempt, spent the bytes of all partials.
	tried, spent, count int
	last                json.RawMessage
}

// checkPartials rejects partials of answers that have none.
func (c config) checkPartials() *wire.NodeError {
	switch {
	case !c.Partials:
		return nil
	case c.EnvelopeType == "" && c.Contract == nil && len(c.OutputSchema) == 0:
		return node.Invalid("/config/partials: an answer in text has none; " +
			"want /config/envelopeType, /config/envelopeContract or /config/outputSchema")
	case c.ExpectsStreaming != nil && !*c.ExpectsStreaming:
		return node.Invalid("/config/partials: want /config/expectsStreaming true, or absent")
	}
	return nil
}

// newPartials returns nil if the node does not request partials. A kind whose schema cannot be applied
// to a part of a document has none.
func (e *emission) newPartials(ctx context.Context, projected *projection.Projection) (*partials, error) {
	if !e.partials {
		return nil, nil
	}
	p := &partials{
		kinds:      map[string]*schema.Schema{},
		requested:  e.expected.kind,
		named:      e.accepts,
		declares:   e.requestedSchema().namesEnvelope,
		projection: projected,
		budget:     schema.NewBudget(growthShare * maxPartial),
	}
	if e.expected.value != nil {
		p.kinds[""] = growingSchema(e.expected.value)
		return p, nil
	}
	names := []string{e.expected.kind}
	if e.contract != nil {
		names = append(names, e.contract.Accepts...)
	}
	for _, name := range names {
		if name == "" || wire.IsUniversal(name) {
			continue
		}
		k, ok, err := e.kind(ctx, name)
		if err != nil {
			return nil, err
		}
		if s := e.requestedSchemas.compile(k.Name, k.Schema).schema; ok && s != nil {
			p.kinds[name] = growingSchema(s)
		}
	}
	return p, nil
}

// growingSchema returns nil if the schema has no form for parts of documents.
func growingSchema(s *schema.Schema) *schema.Schema {
	g, err := s.Growing()
	if err != nil {
		return nil
	}
	return g
}

// add adds a piece of the redacted text, and returns the partial that it completes, if any.
func (p *partials) add(piece string, last bool) growth {
	if p == nil || last || len(p.text) > maxPartial {
		return growth{}
	}
	p.text = append(p.text, piece...)
	room := freePartials + growthShare*len(p.text) - p.spent
	if len(p.text)-p.tried < max(minGrowth, len(p.text)/growthShare) || len(p.last) > room || p.budget.Spent() {
		return growth{}
	}
	p.tried = len(p.text)
	kind, payload := p.read(string(p.text))
	if isEmpty(payload) || payload == nil || bytes.Equal(payload, p.last) || len(payload) > room {
		return growth{}
	}
	p.last = payload
	p.spent += len(payload)
	p.count++
	return growth{
		EnvelopeType: kind,
		Payload:      payload,
		Partial:      &partialInfo{IsPartial: true, Index: p.count - 1, Total: -1},
	}
}

// read returns the payload that is being written at the end of a text; nil if it has no valid part.
func (p *partials) read(text string) (kind string, payload json.RawMessage) {
	x := extract(text)
	switch {
	case x.broken >= 0:
		text = text[x.broken:]
	case len(x.documents) > 0:
		text = string(x.documents[len(x.documents)-1].raw)
	default:
		return "", nil
	}
	c, ok := closeDocument(text)
	if !ok {
		return "", nil
	}
	if c.open != nil {
		// A string that is still open is shown if it can continue in any way.
		kind, payload = p.valid(c.open)
		if _, longer := p.valid(c.longer); payload != nil && longer != nil {
			return kind, payload
		}
	}
	return p.valid(c.complete)
}

// valid returns the payload in a document, if what is there of it satisfies its schema.
func (p *partials) valid(doc json.RawMessage) (kind string, payload json.RawMessage) {
	if p.projection != nil {
		restored, err := p.projection.Restore(doc)
		if err != nil {
			return "", nil
		}
		doc = restored
	}
	kind, payload = p.payloadOf(doc)
	s := p.kinds[kind]
	if payload == nil || s == nil {
		return "", nil
	}
	value, violations := schema.UnifyNulls(payload, func(doc []byte) []schema.Violation {
		return s.ValidateWithin(doc, p.budget)
	})
	if len(violations) > 0 {
		return "", nil
	}
	return kind, value
}

// payloadOf returns the payload in a document: of the last envelope of a list, of an envelope, or the
// document itself.
func (p *partials) payloadOf(doc json.RawMessage) (kind string, payload json.RawMessage) {
	if s, ok := p.kinds[""]; ok && s != nil {
		return "", doc
	}
	members := strictjson.Object(doc)
	var items []json.RawMessage
	if json.Unmarshal(members[projection.TurnMember], &items) == nil && len(items) > 0 && len(members) == 1 {
		members = strictjson.Object(items[len(items)-1])
		kind, _ = strictjson.String(members["type"])
		return kind, members["payload"]
	}
	kind, ok := strictjson.String(members["type"])
	if ok && !p.declares && p.named(kind) {
		return kind, members["payload"]
	}
	if _, listed := members[projection.TurnMember]; listed && len(members) == 1 && p.kinds[p.requested] != nil {
		return "", nil // its first envelope follows
	}
	return p.requested, doc
}
