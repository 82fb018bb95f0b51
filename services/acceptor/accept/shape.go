package accept

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

//go:embed envelope.schema.json
var envelopeSchemaJSON []byte

// envelopeSchema is compiled on first use; the document is part of the binary
// and a test compiles it.
var envelopeSchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("envelope", envelopeSchemaJSON)
	if err != nil {
		panic("accept: embedded envelope schema: " + err.Error())
	}
	return s
})

// shape reads the document: bounded before it is decoded, closed at the top
// (ai-envelope.schema.json), with a time that is one.
func shape(_ context.Context, p *passage) (*Refusal, error) {
	doc := p.req.Document
	asset, refusal := p.measured(doc)
	if refusal != nil {
		return refusal, nil
	}
	members, err := split(doc, asset)
	if err != nil {
		return misshapen("the document is not one sound JSON value within the limits", unsound(err)), nil
	}
	p.peek(members)
	if n := len(members["payload"]) - asset; n > MaxPayloadBytes {
		return misshapen("the payload is too large", Detail{
			InstancePath: "/payload", Keyword: strictjson.RuleSize, Message: fmt.Sprintf("at most %d bytes are taken", MaxPayloadBytes),
		}), nil
	}
	rest := withoutPayload(doc, members)
	if wrong := envelopeSchema().Validate(rest); len(wrong) > 0 {
		return misshapen("the document is not an AI envelope", detailsOf("", wrong)...), nil
	}
	if err := json.Unmarshal(rest, &p.env); err != nil {
		return nil, fmt.Errorf("decode a document that has the shape: %w", err)
	}
	p.env.Payload = members["payload"]
	if err := json.Unmarshal(p.env.Meta, &p.meta); err != nil {
		return nil, fmt.Errorf("decode meta that has the shape: %w", err)
	}
	p.noteTrace()
	p.facts.Version, p.facts.Trust = int64(p.env.SchemaVersion), p.resolveTrust()
	if p.facts.NodeID == "" {
		p.facts.NodeID = p.env.NodeID
	}
	if !isDateTime(p.meta.TS) {
		return misshapen("meta.ts must be an ISO 8601 date and time, as 2026-01-31T12:00:00Z", Detail{
			InstancePath: "/meta/ts", SchemaPath: "/properties/meta/properties/ts/format", Keyword: "format",
			Message: "must be an ISO 8601 date and time with an offset",
		}), nil
	}
	return nil, nil
}

// noteTrace takes the envelope's own trace context; a malformed one is ignored,
// not refused (OpenWOP envelope contract §2, EnvelopeMeta).
func (p *passage) noteTrace() {
	if wire.ValidTraceparent(p.meta.Traceparent) {
		p.facts.Traceparent = p.meta.Traceparent
	}
}

func misshapen(message string, details ...Detail) *Refusal {
	return &Refusal{Status: Invalid, Code: fault.InvalidEnvelopeShape, Message: message, Details: details}
}

// unsound tells what strictjson found.
func unsound(err error) Detail {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return Detail{InstancePath: e.Path, Keyword: e.Rule, Message: e.Reason}
	}
	return Detail{Keyword: strictjson.RuleSyntax}
}

// split bounds a document and gives its members; none if it is no object. asset is
// the length of what does not count in it.
func split(doc []byte, asset int) (map[string]json.RawMessage, error) {
	return strictjson.Split(doc, strictjson.Limits{MaxBytes: maxEnvelopeBytes + asset, MaxDepth: maxEnvelopeDepth})
}

// withoutPayload is the document with null for its payload, which any payload
// may be at this layer: so it is not read twice.
func withoutPayload(doc []byte, members map[string]json.RawMessage) []byte {
	raw, ok := members["payload"]
	if !ok {
		return doc
	}
	members["payload"] = json.RawMessage("null")
	defer func() { members["payload"] = raw }()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return doc
	}
	return b.Bytes()
}

// peek notes type and correlationId as far as they are usable, so that the
// events of a misshapen envelope can still name their cause.
func (p *passage) peek(members map[string]json.RawMessage) {
	text := func(name string, limit int) string {
		var s string
		if json.Unmarshal(members[name], &s) != nil || utf8.RuneCountInString(s) > limit {
			return ""
		}
		return s
	}
	p.facts.Kind = text("type", maxTypeLength)
	p.facts.EnvelopeID = text("envelopeId", maxIDLength)
	p.facts.CorrelationID = text("correlationId", maxIDLength)
}

// detailsOf turns violations into details with paths below prefix.
func detailsOf(prefix string, wrong []schema.Violation) []Detail {
	out := make([]Detail, 0, len(wrong))
	for _, v := range wrong {
		out = append(out, Detail{InstancePath: prefix + v.InstancePath, SchemaPath: v.SchemaPath, Keyword: v.Keyword, Message: v.Message})
	}
	return out
}

// Peek reads type and correlationId of a document that nobody has judged yet;
// empty where it has none, and for one that is not sound.
func Peek(doc []byte) (kind, correlationID string) {
	return named(doc, 0) // one that is larger holds an asset, and asks nothing
}

// named is Peek of a document in which asset bytes do not count.
func named(doc []byte, asset int) (kind, correlationID string) {
	members, err := split(doc, asset)
	if err != nil {
		return "", ""
	}
	var p passage
	p.peek(members)
	return p.facts.Kind, p.facts.CorrelationID
}

// Mentions reports whether a document may be of a kind, without reading it: one
// that does not hold the kind's name, plain or escaped, is of another.
func Mentions(doc []byte, kind string) bool {
	return bytes.Contains(doc, []byte(kind)) || bytes.Contains(doc, []byte(`\u`))
}
