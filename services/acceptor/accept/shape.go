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

// envelopeSchema is compiled on first use. The panic cannot happen: the document is
// embedded, and a test compiles it.
var envelopeSchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("envelope", envelopeSchemaJSON)
	if err != nil {
		panic("accept: embedded envelope schema: " + err.Error())
	}
	return s
})

// shape checks and decodes the document. It limits size and depth before decoding,
// applies the closed envelope schema (ai-envelope.schema.json), and checks meta.ts.
func shape(_ context.Context, e *execution) (*Refusal, error) {
	doc := e.req.Document
	asset, refusal := e.measureAsset(doc)
	if refusal != nil {
		return refusal, nil
	}
	members, err := splitMembers(doc, asset)
	if err != nil {
		return invalidShape("the document is not a valid JSON value within the limits", syntaxDetail(err)), nil
	}
	e.setIDs(members)
	if n := len(members["payload"]) - asset; n > MaxPayloadBytes {
		return invalidShape("the payload is too large", Detail{
			InstancePath: "/payload",
			Keyword:      strictjson.RuleSize,
			Message:      fmt.Sprintf("must have at most %d bytes", MaxPayloadBytes),
		}), nil
	}
	rest := withoutPayload(doc, members)
	if wrong := envelopeSchema().Validate(rest); len(wrong) > 0 {
		return invalidShape("the document is not an AI envelope", detailsOf("", wrong)...), nil
	}
	if err := json.Unmarshal(rest, &e.env); err != nil {
		return nil, fmt.Errorf("decode a document of valid shape: %w", err)
	}
	e.env.Payload = members["payload"]
	if err := json.Unmarshal(e.env.Meta, &e.meta); err != nil {
		return nil, fmt.Errorf("decode meta of valid shape: %w", err)
	}
	e.setTraceparent()
	e.attrs.Version, e.attrs.Trust = int64(e.env.SchemaVersion), e.resolveTrust()
	if e.attrs.NodeID == "" {
		e.attrs.NodeID = e.env.NodeID
	}
	if !isDateTime(e.meta.TS) {
		return invalidShape("meta.ts must be an ISO 8601 date and time, such as 2026-01-31T12:00:00Z", Detail{
			InstancePath: "/meta/ts", SchemaPath: "/properties/meta/properties/ts/format", Keyword: "format",
			Message: "must be an ISO 8601 date and time with an offset",
		}), nil
	}
	return nil, nil
}

// setTraceparent uses the envelope's own trace context. A malformed one is ignored,
// not refused (OpenWOP envelope contract §2, EnvelopeMeta).
func (e *execution) setTraceparent() {
	if wire.ValidTraceparent(e.meta.Traceparent) {
		e.attrs.Traceparent = e.meta.Traceparent
	}
}

func invalidShape(message string, details ...Detail) *Refusal {
	return &Refusal{Status: Invalid, Code: fault.InvalidEnvelopeShape, Message: message, Details: details}
}

// syntaxDetail describes an error of strictjson.
func syntaxDetail(err error) Detail {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return Detail{InstancePath: e.Path, Keyword: e.Rule, Message: e.Reason}
	}
	return Detail{Keyword: strictjson.RuleSyntax}
}

// splitMembers limits a document and returns its members; none if it is no object.
// asset is the length of the base64 that does not count against the limit.
func splitMembers(doc []byte, asset int) (map[string]json.RawMessage, error) {
	return strictjson.Split(doc, strictjson.Limits{MaxBytes: maxEnvelopeBytes + asset, MaxDepth: maxEnvelopeDepth})
}

// withoutPayload returns the document with null as its payload. The envelope schema
// allows any payload, so the payload need not be parsed twice.
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

// setIDs stores type, envelopeId and correlationId where they are usable, so that
// the events of an envelope of invalid shape can still name their cause.
func (e *execution) setIDs(members map[string]json.RawMessage) {
	text := func(name string, limit int) string {
		var s string
		if json.Unmarshal(members[name], &s) != nil || utf8.RuneCountInString(s) > limit {
			return ""
		}
		return s
	}
	e.attrs.Kind = text("type", maxTypeLength)
	e.attrs.EnvelopeID = text("envelopeId", maxIDLength)
	e.attrs.CorrelationID = text("correlationId", maxIDLength)
}

// detailsOf turns violations into details with paths below prefix.
func detailsOf(prefix string, wrong []schema.Violation) []Detail {
	out := make([]Detail, 0, len(wrong))
	for _, v := range wrong {
		out = append(out, Detail{
			InstancePath: prefix + v.InstancePath,
			SchemaPath:   v.SchemaPath,
			Keyword:      v.Keyword,
			Message:      v.Message,
		})
	}
	return out
}

// Peek reads type and correlationId of a document before it is validated. Both are
// empty for a document that is not valid JSON, or that holds a large asset.
func Peek(doc []byte) (kind, correlationID string) {
	return readIDs(doc, 0)
}

// readIDs is Peek for a document with that many bytes of base64, which do not count
// against the limit.
func readIDs(doc []byte, asset int) (kind, correlationID string) {
	members, err := splitMembers(doc, asset)
	if err != nil {
		return "", ""
	}
	var e execution
	e.setIDs(members)
	return e.attrs.Kind, e.attrs.CorrelationID
}

// MayBeKind reports whether a document may be of a kind, without parsing it. False
// means that it contains neither the kind's name nor an escape.
func MayBeKind(doc []byte, kind string) bool {
	return bytes.Contains(doc, []byte(kind)) || bytes.Contains(doc, []byte(`\u`))
}
