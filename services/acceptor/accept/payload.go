package accept

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// payload judges the payload by the schema of its kind, at the advertised
// version.
func payload(_ context.Context, p *passage) (*Refusal, error) {
	if wrong := p.judge(); len(wrong) > 0 {
		if p.env.Type == KindSurface && slices.ContainsFunc(wrong, unknownCatalogue) {
			return p.unknownCatalogue(), nil
		}
		return &Refusal{
			Status: Invalid, Code: fault.EnvelopeInvalid,
			Message: fmt.Sprintf("the payload does not satisfy the schema of its kind in %d place(s)", len(wrong)),
			Details: detailsOf("/payload", wrong),
		}, nil
	}
	if r := p.media(); r != nil {
		return r, nil
	}
	if r := p.surface(); r != nil {
		return r, nil
	}
	if p.env.Type == KindSchemaRequest && !p.policy.AnyRequestedKind {
		return p.requested()
	}
	return nil, nil
}

// unknownCatalogue reports that a surface is for a catalogue of components which
// this host does not have.
func unknownCatalogue(v schema.Violation) bool {
	return v.InstancePath == "/catalogVersion" && v.Keyword == "enum"
}

// unknownCatalogue refuses such a surface as one of an unknown version, for that
// is what it is: the rest of it cannot be judged (OpenWOP envelope contract
// §4.1, §18).
func (p *passage) unknownCatalogue() *Refusal {
	const message = "the surface is for a catalogue version that this host does not have"
	return &Refusal{
		Status: Invalid, Code: fault.UnknownSchemaVersion, Message: message,
		Details: []Detail{{InstancePath: "/payload/catalogVersion", SchemaPath: "/properties/catalogVersion/enum", Keyword: "enum", Message: message}},
	}
}

// surface refuses a form whose answers could not be told apart.
func (p *passage) surface() *Refusal {
	if p.env.Type != KindSurface {
		return nil
	}
	s, err := a2ui.Parse(p.env.Payload)
	if err != nil {
		return nil // a kind whose schema the host has changed
	}
	wrong := s.Ambiguous()
	if len(wrong) == 0 {
		return nil
	}
	r := &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "two components of the surface have the same id"}
	for _, w := range wrong {
		r.Details = append(r.Details, Detail{InstancePath: "/payload" + w.Path, SchemaPath: "/$defs/surface", Keyword: "unique", Message: w.Message})
	}
	return r
}

// judge validates the payload. A null reasoning reads as an absent one, which
// is how strict modes of providers write it (OpenWOP envelope contract §5): it
// is dropped where the schema knows no null.
func (p *passage) judge() []schema.Violation {
	if p.kind.Payload == nil {
		return nil
	}
	wrong := p.kind.Payload.Validate(p.shortened(p.env.Payload))
	if len(wrong) == 0 {
		return nil
	}
	if less, ok := withoutNull(p.env.Payload, "reasoning"); ok {
		if wrong = p.kind.Payload.Validate(p.shortened(less)); len(wrong) == 0 {
			p.env.Payload = less
		}
	}
	return wrong
}

// requested checks the kind that schema.request asks for: it must be advertised
// (OpenWOP envelope contract §3.3).
func (p *passage) requested() (*Refusal, error) {
	var ask struct {
		EnvelopeType string `json:"envelopeType"`
	}
	if err := strictjson.Read(p.env.Payload, &ask); err != nil {
		return nil, fmt.Errorf("decode a payload that has the shape: %w", err)
	}
	if _, ok := p.kinds.Find(ask.EnvelopeType); !ok {
		return p.unknownKind(ask.EnvelopeType, "schema.request asks for a kind this host does not advertise"), nil
	}
	return nil, nil
}

// withoutNull is the object without the named member, if that is null. All
// other members keep their order and bytes.
func withoutNull(object []byte, name string) ([]byte, bool) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	out, dropped := []byte("{"), false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, false
		}
		if key == name && string(raw) == "null" {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		text, _ := key.(string)
		out = append(append(wire.AppendString(out, text), ':'), raw...)
	}
	return append(out, '}'), dropped
}
