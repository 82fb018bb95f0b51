package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// unreadableError is returned for an answer whose documents cannot be read with certainty. The model is
// called again with its detail.
type unreadableError struct{ failure }

func (e unreadableError) Error() string { return e.detail }

func unreadable(detail string) error {
	return unreadableError{failure{reason: reasonSchema, code: fault.EnvelopeInvalid, detail: detail}}
}

// reading is what a document is.
type reading struct {
	doc document
	// envelopes are those in the document; nil if it is a payload.
	envelopes []candidate
	// known means that the host has a kind of the envelopes.
	known bool
	// wrongType means that the payload has another type than the requested kind.
	wrongType bool
}

// candidates reads the documents of an answer as envelopes. A list of envelopes that the node asks for
// is the answer. Otherwise all envelopes are, in their order, and of the documents that are payloads
// the first in rank that satisfies the schema of the requested kind. If one of these documents stands
// alone, those amid prose do not count (ADR 0042).
func (r *reader) candidates(ctx context.Context, docs []document) ([]candidate, error) {
	if items, ok, err := r.listed(ctx, docs); ok || err != nil {
		return items, err
	}
	docs, err := r.unwrapped(ctx, docs, r.requestedSchema().schema)
	if err != nil {
		return nil, err
	}
	var good, others []reading
	place, answered := 0, false
	for _, d := range ranked(docs) {
		if len(good) > 0 && rank(d)>>1 != place {
			break
		}
		rd, err := r.read(ctx, d)
		if err != nil {
			return nil, err
		}
		switch {
		case rd.envelopes == nil && (answered || r.expected.kind == ""):
			continue
		case rd.envelopes == nil && len(docs) > 1:
			rd, answered, err = r.readPayload(ctx, rd)
			if err != nil {
				return nil, err
			}
		case rd.envelopes == nil:
			answered = true // the accept pipeline validates it
		}
		if rd.envelopes == nil && !answered || rd.envelopes != nil && !rd.known {
			others = append(others, rd)
			continue
		}
		good, place = append(good, rd), rank(d)>>1
	}
	if len(good) == 0 {
		good = r.rejected(others)
	}
	slices.SortFunc(good, func(a, b reading) int { return cmp.Compare(a.doc.offset, b.doc.offset) })
	var out []candidate
	for _, rd := range good {
		if rd.envelopes == nil {
			rd.envelopes = []candidate{payloadCandidate(rd.doc, r.expected.kind)}
		}
		out = append(out, rd.envelopes...)
	}
	return out, nil
}

// readPayload validates a payload. ok is false if it does not satisfy the requested schema.
func (r *reader) readPayload(ctx context.Context, rd reading) (out reading, ok bool, err error) {
	s := r.requestedSchema().schema
	if s == nil {
		return rd, false, nil
	}
	value, violations, err := r.validate(ctx, s, rd.doc.raw)
	switch {
	case err != nil:
	case len(violations) == 0:
		rd.doc.raw = value
	case r.budget.Spent(): // the document could be the answer
		err = unreadable(violations[0].Message)
	}
	rd.wrongType = wrongType(violations)
	return rd, len(violations) == 0, err
}

// rejected returns what the accept pipeline is to reject if nothing is acceptable: the envelopes, else
// the payload that is first in rank, if possible one of the right type.
func (r *reader) rejected(others []reading) []reading {
	envelopes := slices.DeleteFunc(slices.Clone(others), func(rd reading) bool { return rd.envelopes == nil })
	if len(envelopes) > 0 || len(others) == 0 {
		return envelopes
	}
	i := max(0, slices.IndexFunc(others, func(rd reading) bool { return !rd.wrongType }))
	return others[i : i+1]
}

// listed returns the envelopes of a list, if the model was asked for one. Of several lists, the first in
// rank whose items are all envelopes that the node accepts is the answer.
func (r *reader) listed(ctx context.Context, docs []document) (out []candidate, ok bool, err error) {
	if r.expected.turn == nil {
		return nil, false, nil
	}
	var chosen []document
	for _, d := range ranked(docs) {
		if inner, isText := textDocument(d); isText {
			d = inner
		}
		items, isList := r.turnDocuments(d)
		if !isList {
			continue
		}
		stray := slices.ContainsFunc(items, func(item document) bool { return !isEnvelope(item) })
		if stray {
			if _, payload, err := r.readPayload(ctx, reading{doc: d}); payload || err != nil {
				return nil, false, err
			}
		}
		accepted := len(items) > 0 && !stray && !slices.ContainsFunc(items, func(item document) bool {
			c, _ := newCandidate(item)
			return !r.accepts(c.kind)
		})
		if !ok || accepted {
			chosen, ok = items, true
		}
		if accepted {
			break
		}
	}
	if !ok {
		return nil, false, nil
	}
	out, err = r.items(ctx, chosen)
	return out, true, err
}

// items reads the items of a list of envelopes.
func (r *reader) items(ctx context.Context, items []document) ([]candidate, error) {
	if len(items) == 0 {
		return nil, unreadable("its list has no envelope")
	}
	var out []candidate
	for _, d := range items {
		c, ok := newCandidate(d)
		if !ok && r.expected.kind == "" {
			return nil, unreadable("an item of its list is not an envelope with type and payload")
		}
		if !r.accepts(c.kind) {
			_, payload, err := r.readPayload(ctx, reading{doc: d})
			if err != nil {
				return nil, err
			}
			if payload || !ok {
				c = payloadCandidate(d, r.expected.kind)
			}
		}
		c, err := r.withoutText(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// read decides what a document is. What was asked for decides, then the schema of the requested kind,
// and no guess from the members alone: an object with type and payload that satisfies the schema is a
// payload. It is an envelope only if the schema does not name these members, the type is a namespaced
// kind that the node accepts, and the payload satisfies that kind's schema.
func (r *reader) read(ctx context.Context, d document) (reading, error) {
	if inner, ok := textDocument(d); ok {
		_, payload, err := r.readPayload(ctx, reading{doc: d})
		if err != nil {
			return reading{}, err
		}
		if !payload {
			d = inner
		}
	}
	rd := reading{doc: d}
	found := envelopesOf(d)
	if found == nil {
		return rd, nil
	}
	_, payload, err := r.readPayload(ctx, rd)
	switch {
	case err != nil:
		return rd, err
	case payload && (len(found) > 1 || d.raw[0] == '[' || r.requestedSchema().namesEnvelope):
		return rd, nil
	case payload:
		if meant, err := r.isMeant(ctx, found[0]); !meant || err != nil {
			return rd, err
		}
	}
	rd.envelopes = found
	for i, c := range found {
		if found[i], err = r.withoutText(ctx, c); err != nil {
			return rd, err
		}
		known, err := r.knows(ctx, c.kind)
		if err != nil {
			return rd, err
		}
		rd.known = rd.known || known
	}
	return rd, nil
}

// withoutText returns the envelope with its payload, if the model wrote that as JSON text.
func (r *reader) withoutText(ctx context.Context, c candidate) (candidate, error) {
	text, ok := strictjson.String(c.body["payload"])
	if !ok || !json.Valid([]byte(text)) {
		return c, nil
	}
	k, _, err := r.kind(ctx, c.kind)
	if err != nil {
		return c, err
	}
	s := r.requestedSchemas.compile(k.Name, k.Schema).schema
	if s == nil {
		return c, nil
	}
	for _, payload := range []json.RawMessage{c.body["payload"], json.RawMessage(text)} {
		_, violations, err := r.validate(ctx, s, payload)
		if err != nil {
			return c, err
		}
		if len(violations) == 0 {
			c.body = maps.Clone(c.body)
			c.body["payload"] = payload
			break
		}
	}
	return c, nil
}

// isMeant reports whether a document that could be a payload is an envelope: no payload has the name of a
// kind as its type, and a value of that kind as its payload, by chance. The name error has no
// namespace, and is an ordinary word.
func (r *reader) isMeant(ctx context.Context, c candidate) (bool, error) {
	if !r.accepts(c.kind) || !strings.Contains(c.kind, ".") || c.malformed {
		return false, nil
	}
	for name := range c.body {
		if !slices.Contains(envelopeMembers, name) {
			return false, nil
		}
	}
	k, _, err := r.kind(ctx, c.kind)
	if err != nil {
		return false, err
	}
	s := r.requestedSchemas.compile(k.Name, k.Schema).schema
	if s == nil { // the accept pipeline judges alone
		return true, nil
	}
	_, violations, err := r.validate(ctx, s, c.body["payload"])
	return len(violations) == 0, err
}

// envelopeMembers are the members of an envelope (OpenWOP envelope contract §2).
//
//nolint:gochecknoglobals // a constant
var envelopeMembers = []string{
	"type", "schemaVersion", "envelopeId", "correlationId", "nodeId", "payload", "meta", "partial",
}

// accepts reports whether the node accepts a kind.
func (e *emission) accepts(kind string) bool {
	return kind != "" && (kind == e.expected.kind || wire.IsUniversal(kind) ||
		e.contract != nil && slices.Contains(e.contract.Accepts, kind))
}

// acceptedKinds returns the kinds that the node accepts and a model can send: without those that the host's
// limits forbid.
func (e *emission) acceptedKinds() (out []string) {
	add := func(kind string) {
		if kind != "" && !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	add(e.expected.kind)
	if e.contract != nil {
		for _, kind := range e.contract.Accepts {
			add(kind)
		}
	}
	if e.limits.ClarificationRounds > 0 {
		add(wire.KindClarificationRequest)
	}
	if e.limits.SchemaRounds > 0 {
		add(wire.KindSchemaRequest)
	}
	add(wire.KindError)
	return out
}

// knows reports whether the host has a kind, or the node accepts it.
func (e *emission) knows(ctx context.Context, kind string) (bool, error) {
	if e.accepts(kind) {
		return true, nil
	}
	_, ok, err := e.deps.Schemas.Kind(ctx, kind)
	return ok, err
}

// kind returns a kind of the host, or the requested one.
func (e *emission) kind(ctx context.Context, name string) (Kind, bool, error) {
	if name == e.expected.kind {
		return Kind{Name: name, Version: e.expected.version, Schema: e.expected.schema}, true, nil
	}
	return e.deps.Schemas.Kind(ctx, name)
}

// requestedSchema returns the compiled schema of the requested kind.
func (e *emission) requestedSchema() requestedSchema {
	if e.expected.kind == "" {
		return requestedSchema{}
	}
	return e.requestedSchemas.compile(e.expected.kind, e.expected.schema)
}

// envelopesOf returns the envelope that an object could be, or those that a list could be; nil for any
// other document.
func envelopesOf(d document) []candidate {
	if !bytes.HasPrefix(d.raw, []byte("[")) {
		if c, ok := newCandidate(d); ok {
			return []candidate{c}
		}
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(d.raw, &items) != nil {
		return nil
	}
	var out []candidate
	for _, raw := range items {
		item := d
		item.raw = raw
		c, ok := newCandidate(item)
		if !ok {
			return nil // any other list is a payload
		}
		out = append(out, c)
	}
	return out
}

func isEnvelope(d document) bool {
	_, _, ok := envelopeBody(d.raw)
	return ok
}

// envelopeBody returns the members of an object with a type and a payload.
func envelopeBody(raw json.RawMessage) (body map[string]json.RawMessage, kind string, ok bool) {
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &body) != nil {
		return nil, "", false
	}
	_, hasPayload := body["payload"]
	if !hasPayload || json.Unmarshal(body["type"], &kind) != nil || kind == "" {
		return nil, "", false
	}
	return body, kind, true
}

// newCandidate reads an object with a type and a payload.
func newCandidate(d document) (candidate, bool) {
	body, kind, ok := envelopeBody(d.raw)
	if !ok {
		return candidate{}, false
	}
	malformed := strictjson.Check(d.raw, unlimited(d.raw)) != nil
	return candidate{doc: d, body: body, kind: kind, malformed: malformed}, true
}

// unlimited returns limits that doc cannot exceed: the shape step enforces size and depth.
func unlimited(doc []byte) strictjson.Limits {
	return strictjson.Limits{MaxBytes: len(doc), MaxDepth: len(doc)}
}

func payloadCandidate(d document, kind string) candidate {
	return candidate{doc: d, kind: kind, body: map[string]json.RawMessage{
		"type": wire.AppendString(nil, kind), "payload": d.raw,
	}}
}

// unrequested returns the first envelope of a kind that the node did not ask for. A kind that the host
// does not know is left to the accept pipeline, and with a contract the contract decides.
func (e *emission) unrequested(ctx context.Context, candidates []candidate) (kind string, err error) {
	if e.contract != nil || e.expected.kind == "" {
		return "", nil
	}
	for _, c := range candidates {
		if c.kind == e.expected.kind || wire.IsUniversal(c.kind) {
			continue
		}
		_, known, err := e.deps.Schemas.Kind(ctx, c.kind)
		if known || err != nil {
			return c.kind, err
		}
	}
	return "", nil
}

// isFailure returns the failure of an unreadable answer.
func isFailure(err error) (failure, bool) {
	e, ok := errors.AsType[unreadableError](err)
	return e.failure, ok
}
