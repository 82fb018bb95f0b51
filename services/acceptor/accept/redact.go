package accept

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// redact takes the run's secrets out of payload and meta. From here on the
// redacted payload is the payload: the raw one is gone (OpenWOP envelope
// contract §11). Ids cannot be scrubbed, for they would no longer match
// anything, so an envelope with a secret in one is refused.
func redact(ctx context.Context, p *passage) (*Refusal, error) {
	ids := []struct{ path, text string }{
		{"/type", p.env.Type},
		{"/envelopeId", p.env.EnvelopeID},
		{"/correlationId", p.env.CorrelationID},
		{"/nodeId", p.env.NodeID},
		{"/nodeId", p.facts.NodeID}, // the caller's, which wins over the envelope's
	}
	in := Texts{Documents: []json.RawMessage{p.env.Payload, p.env.Meta}, Registration: p.req.Registration}
	for _, id := range ids {
		in.Strings = append(in.Strings, id.text)
	}
	for _, d := range p.req.Preceding {
		in.Documents = append(in.Documents, d.Payload)
	}
	if p.carried != nil { // a text of its own: what is cut out of it must be noticed
		var err error
		if in.Documents[0], err = replaced(p.env.Payload, "base64", json.RawMessage(`""`)); err != nil {
			return nil, err
		}
		in.Strings = append(in.Strings, p.carried.text)
	}
	out, count, err := p.redactor.Redact(ctx, p.req.Run, in)
	if err != nil {
		return nil, err
	}
	if len(out.Documents) != len(in.Documents) || len(out.Strings) != len(in.Strings) {
		return nil, fault.New(fault.ServiceUnavailable, "the redactor answered with another number of texts")
	}
	for i, id := range ids {
		if out.Strings[i] != id.text {
			return misshapen("an id holds a secret", Detail{InstancePath: id.path, Keyword: "secret", Message: "must not hold a secret"}), nil
		}
	}
	p.redactions = count
	if p.carried != nil {
		if err := p.inspect(ctx, out.Strings[len(ids)]); err != nil {
			return nil, err
		}
	}
	if len(p.embedded) > 0 {
		marker, err := p.within(ctx, p.embedded)
		if err != nil {
			return nil, err
		}
		if marker != "" {
			if out.Documents[0], err = replaced(out.Documents[0], "url", wire.AppendString(nil, marker)); err != nil {
				return nil, err
			}
		}
	}
	if err := p.precede(out.Documents[2:]); err != nil {
		return nil, err
	}
	return nil, p.adopt(out.Documents[0], out.Documents[1])
}

// precede takes over what is told before the envelope's events. No trust in it is above the
// run's.
func (p *passage) precede(redacted []json.RawMessage) error {
	p.preceding = make([]wire.Draft, len(redacted))
	for i, d := range p.req.Preceding {
		line, err := compact(redacted[i])
		if err != nil {
			return fmt.Errorf("redacted %s: %w", d.Type, err)
		}
		d.Payload = line
		if p.req.Untrusted || p.req.Boundary == wire.Untrusted {
			d.Trust = wire.Untrusted
		}
		p.preceding[i] = d
	}
	return nil
}

// compact writes a document on one line: an event is one line of JSON.
func compact(doc json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	err := json.Compact(&b, doc)
	return b.Bytes(), err
}

// inspect notes a secret in the asset; redacted is its base64 as the redactor
// left it. Bytes that something is cut out of are no asset any more, and cannot
// be blamed on the model: so all of them go, and the marker stays in their place.
// The redactor knows how base64 spells the secrets that are registered; what the
// bytes hold besides, such as a secret in another encoding, is looked for in them.
func (p *passage) inspect(ctx context.Context, redacted string) error {
	c := p.carried
	found := ""
	if redacted != c.text {
		found = markerIn(redacted)
	} else {
		var err error
		if found, err = p.within(ctx, c.data); err != nil {
			return err
		}
	}
	if found != "" {
		*c = carried{secret: found}
	}
	return nil
}

// within is the marker of a secret in an asset's bytes; empty: there is none.
func (p *passage) within(ctx context.Context, data []byte) (string, error) {
	texts := readings(data)
	out, count, err := p.redactor.Redact(ctx, p.req.Run, Texts{Strings: texts, Registration: p.req.Registration})
	if err != nil {
		return "", err
	}
	if len(out.Strings) != len(texts) {
		return "", fault.New(fault.ServiceUnavailable, "the redactor answered with another number of texts")
	}
	for i, text := range texts {
		if out.Strings[i] != text {
			p.redactions += count
			return markerIn(out.Strings[i]), nil
		}
	}
	return "", nil
}

// unread stands for bytes that are no text. It is no longer than one of them, so that
// a reading is no longer than the asset.
const unread = "?"

// readings are the texts that bytes may be: UTF-8, whatever stands between, and
// UTF-16, which is ASCII with a zero beside each byte.
func readings(data []byte) []string {
	out := []string{strings.ToValidUTF8(string(data), unread)}
	if bytes.IndexByte(data, 0) >= 0 {
		out = append(out, strings.ToValidUTF8(strings.ReplaceAll(string(data), "\x00", ""), unread))
	}
	return out
}

// markerIn is the first marker in a text that the redactor has changed.
func markerIn(text string) string {
	const begin, unnamed = "[REDACTED:", "[REDACTED]"
	_, rest, found := strings.Cut(text, begin)
	id, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return unnamed
	}
	return begin + id + "]"
}

// adopt takes over the redacted documents.
func (p *passage) adopt(payload, metaDoc json.RawMessage) error {
	line, err := compact(payload)
	if err != nil {
		return fmt.Errorf("redacted payload: %w", err)
	}
	p.env.Payload = line
	p.env.Meta = metaDoc
	trust := p.meta.ContentTrust
	p.meta = meta{}
	if err := json.Unmarshal(metaDoc, &p.meta); err != nil {
		return fmt.Errorf("redacted meta: %w", err)
	}
	p.meta.ContentTrust = trust // an enum, not a text
	p.facts.Traceparent = p.req.Traceparent
	p.noteTrace()
	return nil
}

// scrub takes secrets out of a refusal and of the facts about its envelope.
func (p *passage) scrub(ctx context.Context, r *Refusal) error {
	texts := []*string{&r.Message, &r.RefusedType, &p.facts.Kind}
	for i := range r.Details {
		texts = append(texts, &r.Details[i].InstancePath, &r.Details[i].Message)
	}
	for i := range r.AllowedKinds { // as a contract lists them: its author's words
		texts = append(texts, &r.AllowedKinds[i])
	}
	ids := []*string{&p.facts.EnvelopeID, &p.facts.CorrelationID, &p.facts.NodeID, &p.facts.Traceparent}
	texts = append(texts, ids...)

	in := Texts{Registration: p.req.Registration}
	for _, t := range texts {
		in.Strings = append(in.Strings, *t)
	}
	out, _, err := p.redactor.Redact(ctx, p.req.Run, in)
	if err != nil {
		return err
	}
	if len(out.Strings) != len(texts) {
		return fault.New(fault.ServiceUnavailable, "the redactor answered with another number of texts")
	}
	for i, t := range texts {
		if i >= len(texts)-len(ids) && out.Strings[i] != *t {
			out.Strings[i] = "" // a scrubbed id names nothing
		}
		*t = out.Strings[i]
	}
	return nil
}
