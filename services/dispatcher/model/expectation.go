package model

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// expectation is what the node requests from the model: a value of a schema, an envelope of a kind,
// or text.
type expectation struct {
	// kind is the requested envelope kind; empty for a bare value or text.
	kind    string
	version int
	// value validates a bare value; nil for envelopes and text.
	value *schema.Schema
	// name is its name in events.
	name string
	// schema is the schema of the answer, instruction the sentence of the prompt about it.
	schema      json.RawMessage
	instruction string
	// turn is the schema of a list of envelopes, if the model is to answer with one.
	turn json.RawMessage
	// reasons means that the answer has a member for reasoning.
	reasons bool
	// inWords means that the schema is put into the prompt, because the vendor cannot express it.
	inWords bool
}

// requested returns the schema that the model is to satisfy.
func (w expectation) requested() json.RawMessage {
	if w.turn != nil {
		return w.turn
	}
	return w.schema
}

// asWords returns the expectation with its schema in the prompt.
func (w expectation) asWords() expectation {
	w.inWords = true
	return w
}

// acceptsAnyText reports whether any answer is acceptable.
func (w expectation) acceptsAnyText() bool { return w.kind == "" && w.value == nil && w.turn == nil }

// containsDocument reports whether a truncated answer still contains a usable document.
func (w expectation) containsDocument(text string) bool {
	return !w.acceptsAnyText() && len(extract(text).documents) > 0
}

// unsafeName matches characters that vendors do not allow in a schema's name.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func schemaName(s string) string {
	s = strings.Trim(unsafeName.ReplaceAllString(s, "_"), "_")
	return s[:min(len(s), 64)]
}

// expect determines the expected answer.
func (l *Loop) expect(ctx context.Context, typeID string, cfg config) (expectation, *wire.NodeError, error) {
	if typeID == node.TypeStructuredOutput {
		e, bad := l.expectValue(cfg.OutputSchema)
		return e, bad, nil
	}
	if cfg.EnvelopeType == "" {
		return expectation{}, nil, nil
	}
	k, ok, err := l.deps.Schemas.Kind(ctx, cfg.EnvelopeType)
	if err != nil {
		return expectation{}, nil, err
	}
	if !ok {
		return expectation{}, &wire.NodeError{
			Code:    string(fault.UnknownEnvelopeKind),
			Message: fmt.Sprintf("/config/envelopeType: this host does not advertise the kind %q", cfg.EnvelopeType),
		}, nil
	}
	return expectation{
		kind:        k.Name,
		version:     k.Version,
		name:        k.Name,
		schema:      k.Schema,
		reasons:     l.reasonings.hasReasoning(k.Schema),
		instruction: "Answer with one JSON document: the payload of an envelope of type " + k.Name + ".",
	}, nil, nil
}

func (l *Loop) expectValue(outputSchema json.RawMessage) (expectation, *wire.NodeError) {
	if len(outputSchema) == 0 {
		return expectation{}, node.Invalid("/config/outputSchema: " +
			"core.ai.structuredOutput needs the JSON Schema of its output")
	}
	v, err := l.outputSchemas.compile(outputSchema)
	if err != nil {
		return expectation{}, node.Invalid("/config/outputSchema: %s", err)
	}
	return expectation{
		value:       v.schema,
		name:        v.name,
		schema:      v.schema.Document(),
		reasons:     l.reasonings.hasReasoning(v.schema.Document()),
		instruction: "Answer with one JSON document that satisfies the given schema.",
	}, nil
}

// requestExpected adds the expected schema, and the instruction to follow it, to a request. A model
// that generates media itself gets neither: its answer is not JSON.
func (l *Loop) requestExpected(req provider.Request, want expectation) provider.Request {
	if want.acceptsAnyText() {
		return req
	}
	req.SchemaName = schemaName(firstNonEmpty(want.name, projection.TurnMember))
	if l.generatesMedia(want.kind, modelgate.Model{Provider: req.Provider, Model: req.Model}) {
		return req
	}
	req.Schema = want.requested()
	req.System = prependInstruction(req.System, want.instruction+l.reasoningHint(want.reasons))
	return req
}

// prependInstruction puts the schema hint before the author's system text. It is the same on every
// attempt (OpenWOP envelope contract §14.4).
func prependInstruction(system, hint string) string {
	if system == "" {
		return hint
	}
	return hint + "\n\n" + system
}

// outputSchemaName returns the name of a bare value in events: the last segment of the schema's
// $id, else its title (OpenWOP envelope contract §14.7).
func outputSchemaName(raw json.RawMessage) string {
	var s struct {
		ID    string `json:"$id"`
		Title string `json:"title"`
	}
	_ = strictjson.Read(raw, &s) // the schema was compiled before
	if id := strings.TrimSuffix(path.Base(s.ID), ".schema.json"); s.ID != "" && id != "" {
		return id
	}
	return firstNonEmpty(s.Title, "structured-output")
}
