package model

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// requestedSchema is the schema of a kind.
type requestedSchema struct {
	schema *schema.Schema
	// members are the plain names of the members of its payloads.
	members map[string]bool
	// namesEnvelope means that its payloads have members type and payload themselves.
	namesEnvelope bool
}

// requestedSchemas caches the schemas of kinds.
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
		names := memberNames(source)
		return requestedSchema{
			schema: compiled, members: plainNames(names), namesEnvelope: names["type"] && names["payload"],
		}, len(source), nil
	})
	return found
}

// memberNames returns the members that a schema, or one that may apply to the same value, names.
func memberNames(source json.RawMessage) map[string]bool {
	names := map[string]bool{}
	addMemberNames(names, source)
	return names
}

func addMemberNames(names map[string]bool, source json.RawMessage) {
	members := strictjson.Object(source)
	for name := range strictjson.Object(members["properties"]) {
		names[name] = true
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		for _, child := range strictjson.Object(members[keyword]) {
			addMemberNames(names, child)
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		var branches []json.RawMessage
		_ = json.Unmarshal(members[keyword], &branches) // the schema was compiled before
		for _, branch := range branches {
			addMemberNames(names, branch)
		}
	}
}

// maxCandidates limits the documents of an answer that are validated.
const maxCandidates = 64

// ranked returns the documents in the order in which they are tried as the answer: those that repeat the
// prompt, and schemas, last, those amid prose after those that stand alone, empty ones after others, earlier ones
// after later ones.
func ranked(docs []document) []document {
	out := slices.Clone(docs)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b document) int { return rank(a) - rank(b) })
	return out[:min(len(out), maxCandidates)]
}

func rank(d document) int {
	const prompt, prose, empty = 4, 2, 1
	n := 0
	if d.echo || d.path != pathDirect && isSchemaDocument(d.raw) {
		n += prompt
	}
	if !d.alone {
		n += prose
	}
	if isEmpty(d.raw) {
		n += empty
	}
	return n
}

// reader reads the documents of one answer. Its budget limits all checks of them together.
type reader struct {
	*emission

	budget *schema.Budget
}

func (e *emission) newReader(text string) *reader {
	return &reader{emission: e, budget: schema.NewBudget(len(text))}
}

// validate validates a document. Nulls that the schema does not allow count as absent, as in payloads.
// The error is that of a canceled context.
func (r *reader) validate(
	ctx context.Context, s *schema.Schema, raw json.RawMessage,
) (json.RawMessage, []schema.Violation, error) {
	if ctx.Err() != nil {
		return raw, nil, context.Cause(ctx)
	}
	value, violations := schema.UnifyNulls(raw, func(doc []byte) []schema.Violation {
		return s.ValidateWithin(doc, r.budget)
	})
	return value, violations, nil
}

// chooseValue returns the document that is the answer: the first in rank that satisfies the schema, else
// the first of the right type, whose violations it returns.
func (r *reader) chooseValue(
	ctx context.Context, docs []document, s *schema.Schema,
) (document, []schema.Violation, error) {
	var (
		chosen document
		wrong  []schema.Violation
	)
	if len(docs) == 1 { // the usual answer wraps nothing
		if d, violations, err := r.readText(ctx, docs[0], s); len(violations) == 0 || err != nil {
			return d, nil, err
		}
	}
	docs, err := r.unwrapped(ctx, docs, s)
	if err != nil {
		return document{}, nil, err
	}
	for i, d := range ranked(docs) {
		d, violations, err := r.readText(ctx, d, s)
		switch {
		case err != nil:
			return d, nil, err
		case len(violations) == 0:
			return d, nil, nil
		case i == 0 || wrongType(wrong) && !wrongType(violations):
			chosen, wrong = d, violations
		}
		if r.budget.Spent() { // a document that was not checked could be the answer
			return d, violations, nil
		}
	}
	return chosen, wrong, nil
}

// readText validates a document. A JSON string that does not satisfy the schema is read as JSON text.
func (r *reader) readText(
	ctx context.Context, d document, s *schema.Schema,
) (document, []schema.Violation, error) {
	value, violations, err := r.validate(ctx, s, d.raw)
	if inner, ok := textDocument(d); ok && len(violations) > 0 && err == nil {
		d = inner
		value, violations, err = r.validate(ctx, s, d.raw)
	}
	if len(violations) == 0 {
		d.raw = value
	}
	return d, violations, err
}

// textDocument returns the document within a JSON string, also in a fenced block.
func textDocument(d document) (document, bool) {
	inner, ok := unfenced(d.raw)
	if ok {
		d.raw, d.path = inner, pathText
	}
	return d, ok
}

// wrongType reports whether the document as a whole has another type than the schema's.
func wrongType(violations []schema.Violation) bool {
	return len(violations) > 0 && violations[0].InstancePath == "" && violations[0].Keyword == "type"
}
