package model

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
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
}

// acceptsAnyText reports whether any answer is acceptable.
func (w expectation) acceptsAnyText() bool { return w.kind == "" && w.value == nil }

// containsDocument reports whether a truncated answer still contains a usable document.
func (w expectation) containsDocument(text string) bool {
	return !w.acceptsAnyText() && len(extractDocuments(text)) > 0
}

// unsafeName matches characters that vendors do not allow in a schema's name.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func schemaName(s string) string {
	s = strings.Trim(unsafeName.ReplaceAllString(s, "_"), "_")
	return s[:min(len(s), 64)]
}

// setExpectation determines the expected answer and adds its schema to the request.
func (c *call) setExpectation(ctx context.Context) (*wire.NodeError, error) {
	if c.task.TypeID == node.TypeStructuredOutput {
		return c.setValueExpectation(), nil
	}
	if c.cfg.EnvelopeType == "" {
		return nil, nil
	}
	k, ok, err := c.deps.Schemas.Kind(ctx, c.cfg.EnvelopeType)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &wire.NodeError{
			Code: string(fault.UnknownEnvelopeKind), Message: fmt.Sprintf("/config/envelopeType: this host does not advertise the kind %q", c.cfg.EnvelopeType),
		}, nil
	}
	c.expected = expectation{kind: k.Name, version: k.Version, name: k.Name}
	c.req.Schema, c.req.SchemaName = k.Schema, schemaName(k.Name)
	c.prependInstruction("Answer with one JSON document: the payload of an envelope of type " + k.Name + ".")
	return nil, nil
}

func (c *call) setValueExpectation() *wire.NodeError {
	if len(c.cfg.OutputSchema) == 0 {
		return node.Invalid("/config/outputSchema: core.ai.structuredOutput needs the JSON Schema of its output")
	}
	v, err := c.outputSchemas.compile(c.cfg.OutputSchema)
	if err != nil {
		return node.Invalid("/config/outputSchema: %s", err)
	}
	c.expected = expectation{value: v.schema, name: v.name}
	c.req.Schema, c.req.SchemaName = c.cfg.OutputSchema, schemaName(c.expected.name)
	c.prependInstruction("Answer with one JSON document that satisfies the given schema.")
	return nil
}

// prependInstruction puts the schema hint before the author's system text. It is the same on every
// attempt (OpenWOP envelope contract §14.4).
func (c *call) prependInstruction(what string) {
	hint := what + c.reasoningHint()
	if c.req.System == "" {
		c.req.System = hint
		return
	}
	c.req.System = hint + "\n\n" + c.req.System
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
