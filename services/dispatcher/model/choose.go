package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// requestedSchema is the schema of a requested kind.
type requestedSchema struct {
	schema *schema.Schema
	// namesEnvelope means that its payloads have members type and payload themselves.
	namesEnvelope bool
}

// requestedSchemas caches the schemas of requested kinds.
type requestedSchemas struct {
	cache[[sha256.Size]byte, requestedSchema]
}

// compile returns no schema if it does not compile; the accept pipeline then judges alone.
func (c *requestedSchemas) compile(kind string, source json.RawMessage) requestedSchema {
	found, _ := c.getOrCompile(sha256.Sum256(source), func() (requestedSchema, int, error) {
		compiled, err := schema.Compile(kind, source)
		if err != nil {
			return requestedSchema{}, len(source), nil
		}
		return requestedSchema{
			schema:        compiled,
			namesEnvelope: namesMember(source, "type") && namesMember(source, "payload"),
		}, len(source), nil
	})
	return found
}

// namesMember reports whether a schema, or one that applies to the same value, names a member.
func namesMember(source json.RawMessage, name string) bool {
	members := strictjson.Object(source)
	if _, ok := strictjson.Member(members["properties"], name); ok {
		return true
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		for _, child := range strictjson.Object(members[keyword]) {
			if namesMember(child, name) {
				return true
			}
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		var branches []json.RawMessage
		_ = json.Unmarshal(members[keyword], &branches) // the schema was compiled before
		for _, branch := range branches {
			if namesMember(branch, name) {
				return true
			}
		}
	}
	return false
}

// satisfies reports whether a document is a value of the requested schema.
func satisfies(s *schema.Schema, raw json.RawMessage) bool {
	if s == nil {
		return false
	}
	_, violations := schema.UnifyNulls(raw, s.Validate)
	return len(violations) == 0
}

// maxCandidates limits the documents of an answer that are validated.
const maxCandidates = 64

// chooseValue returns the document that is the answer: the last one that satisfies the schema, else the
// last one of the right type, whose violations the model is told.
func chooseValue(docs []document, s *schema.Schema) (document, []schema.Violation) {
	chosen, wrong := docs[len(docs)-1], []schema.Violation(nil)
	for i := len(docs) - 1; i >= max(0, len(docs)-maxCandidates); i-- {
		d, violations := readText(docs[i], s)
		switch {
		case len(violations) == 0:
			return d, nil
		case wrong == nil || wrongType(wrong) && !wrongType(violations):
			chosen, wrong = d, violations
		}
	}
	return chosen, wrong
}

// readText validates a document. Nulls that the schema does not allow count as absent, as in payloads. A
// JSON string that does not satisfy the schema is read as JSON text.
func readText(d document, s *schema.Schema) (document, []schema.Violation) {
	value, violations := schema.UnifyNulls(d.raw, s.Validate)
	if inner, ok := textDocument(d); ok && len(violations) > 0 {
		d = inner
		value, violations = schema.UnifyNulls(d.raw, s.Validate)
	}
	if len(violations) == 0 {
		d.raw = value
	}
	return d, violations
}

// textDocument returns the document within a JSON string.
func textDocument(d document) (document, bool) {
	text, ok := strictjson.String(d.raw)
	text = strings.TrimSpace(text)
	if !ok || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || !json.Valid([]byte(text)) {
		return d, false
	}
	return document{raw: json.RawMessage(text), path: pathText, offset: d.offset}, true
}

// wrongType reports whether the document as a whole has another type than the schema's.
func wrongType(violations []schema.Violation) bool {
	return len(violations) > 0 && violations[0].InstancePath == "" && violations[0].Keyword == "type"
}

// findEnvelopes reads the documents of an answer as envelopes. What the node asks for decides: if the
// payloads of its kind have members type and payload themselves, a document that satisfies the kind's
// schema is a payload. Any other object with a type and a payload is an envelope, and an array of
// such objects is several (OpenWOP envelope contract §2.2). Of the other documents, the last one that
// satisfies the schema is the payload of the requested kind.
func (e *emission) findEnvelopes(docs []document) []candidate {
	var (
		envelopes []candidate
		payloads  []document
		// at is the number of envelopes before the payloads.
		at int
	)
	for _, d := range e.listed(docs) {
		found := e.readEnvelopes(d)
		envelopes = append(envelopes, found...)
		if len(found) == 0 && e.expected.kind != "" {
			payloads, at = append(payloads, d), len(envelopes)
		}
	}
	if len(payloads) == 0 {
		return envelopes
	}
	chosen, violations := payloads[len(payloads)-1], []schema.Violation(nil)
	if s := e.requestedSchema().schema; s != nil && len(docs) > 1 {
		chosen, violations = chooseValue(payloads, s)
	} else if inner, ok := textDocument(chosen); ok && !satisfies(s, chosen.raw) {
		chosen = inner
	}
	if len(envelopes) > 0 && len(violations) > 0 { // a remark beside the envelopes
		return envelopes
	}
	if found := e.readEnvelopes(chosen); chosen.path == pathText && len(found) > 0 {
		return append(envelopes, found...)
	}
	out := append([]candidate(nil), envelopes[:at]...)
	out = append(out, payloadCandidate(chosen, e.expected.kind))
	return append(out, envelopes[at:]...)
}

// listed returns the items of a list of envelopes, if the model was asked for one. Of several lists the
// last one is the answer: those before it are drafts.
func (e *emission) listed(docs []document) []document {
	if e.expected.turn == nil {
		return docs
	}
	for _, d := range slices.Backward(docs) {
		if items, ok := turnDocuments(d); ok {
			return items
		}
	}
	return docs
}

// requestedSchema returns the compiled schema of the requested kind.
func (e *emission) requestedSchema() requestedSchema {
	if e.expected.kind == "" {
		return requestedSchema{}
	}
	return e.requestedSchemas.compile(e.expected.kind, e.expected.schema)
}

// readEnvelopes returns the envelopes that a document is; none if it is a payload.
func (e *emission) readEnvelopes(d document) []candidate {
	if bytes.HasPrefix(d.raw, []byte("[")) {
		var items []json.RawMessage
		if json.Unmarshal(d.raw, &items) != nil {
			return nil
		}
		var out []candidate
		for _, raw := range items {
			c, ok := e.readEnvelope(document{raw: raw, path: d.path, offset: d.offset})
			if !ok {
				return nil // any other array is a payload
			}
			out = append(out, c)
		}
		if satisfies(e.requestedSchema().schema, d.raw) { // a payload whose items look like envelopes
			return nil
		}
		return out
	}
	if c, ok := e.readEnvelope(d); ok {
		return []candidate{c}
	}
	return nil
}

func (e *emission) readEnvelope(d document) (candidate, bool) {
	var body map[string]json.RawMessage
	if json.Unmarshal(d.raw, &body) != nil {
		return candidate{}, false
	}
	var kind string
	_, hasPayload := body["payload"]
	if !hasPayload || json.Unmarshal(body["type"], &kind) != nil || kind == "" {
		return candidate{}, false
	}
	if r := e.requestedSchema(); r.namesEnvelope && satisfies(r.schema, d.raw) {
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
