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

// want is what the node asks the model for: a value of a schema, an envelope of
// a kind, or text.
type want struct {
	// kind is the envelope kind asked for; empty for a bare value or text.
	kind    string
	version int
	// value validates a bare value; nil for envelopes and text.
	value *schema.Schema
	// name is what events call it.
	name string
}

// text reports that any answer is right.
func (w want) text() bool { return w.kind == "" && w.value == nil }

// holds reports that a cut-off answer still contains a usable document.
func (w want) holds(text string) bool { return !w.text() && len(extract(text)) > 0 }

// unsafeName finds what a schema's name may not contain at a vendor.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func schemaName(s string) string {
	s = strings.Trim(unsafeName.ReplaceAllString(s, "_"), "_")
	return s[:min(len(s), 64)]
}

// expect works out what the node wants and puts its schema into the request.
func (c *call) expect(ctx context.Context) (*wire.NodeError, error) {
	if c.task.TypeID == node.TypeStructuredOutput {
		return c.expectValue(), nil
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
	c.want = want{kind: k.Name, version: k.Version, name: k.Name}
	c.req.Schema, c.req.SchemaName = k.Schema, schemaName(k.Name)
	c.instruct("Answer with one JSON document: the payload of an envelope of type " + k.Name + ".")
	return nil, nil
}

func (c *call) expectValue() *wire.NodeError {
	if len(c.cfg.OutputSchema) == 0 {
		return node.Invalid("/config/outputSchema: core.ai.structuredOutput needs the JSON Schema of its output")
	}
	v, err := c.values.of(c.cfg.OutputSchema)
	if err != nil {
		return node.Invalid("/config/outputSchema: %s", err)
	}
	c.want = want{value: v.schema, name: v.name}
	c.req.Schema, c.req.SchemaName = c.cfg.OutputSchema, schemaName(c.want.name)
	c.instruct("Answer with one JSON document that satisfies the given schema.")
	return nil
}

// instruct puts the schema hint before the author's system text. It stays the
// same on every attempt (OpenWOP envelope contract §14.4).
func (c *call) instruct(what string) {
	hint := what + c.directive()
	if c.req.System == "" {
		c.req.System = hint
		return
	}
	c.req.System = hint + "\n\n" + c.req.System
}

// valueName is how events name a bare value: the last segment of the schema's
// $id, else its title (OpenWOP envelope contract §14.7).
func valueName(raw json.RawMessage) string {
	var s struct {
		ID    string `json:"$id"`
		Title string `json:"title"`
	}
	_ = strictjson.Read(raw, &s) // it is a schema: it was compiled before
	if id := strings.TrimSuffix(path.Base(s.ID), ".schema.json"); s.ID != "" && id != "" {
		return id
	}
	return first(s.Title, "structured-output")
}
