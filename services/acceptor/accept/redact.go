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

// redact removes the run's secrets from payload and meta. Later steps see only the
// redacted payload (OpenWOP envelope contract §11). A redacted id would no longer
// match, so an envelope with a secret in an id is refused.
func redact(ctx context.Context, e *execution) (*Refusal, error) {
	ids := []struct{ path, text string }{
		{"/type", e.env.Type},
		{"/envelopeId", e.env.EnvelopeID},
		{"/correlationId", e.env.CorrelationID},
		{"/nodeId", e.env.NodeID},
		{"/nodeId", e.attrs.NodeID}, // the caller's, which overrides the envelope's
	}
	in := Texts{Documents: []json.RawMessage{e.env.Payload, e.env.Meta}, Registration: e.req.Registration}
	for _, id := range ids {
		in.Strings = append(in.Strings, id.text)
	}
	for _, d := range e.req.Preceding {
		in.Documents = append(in.Documents, d.Payload)
	}
	if e.asset != nil { // as a text of its own, so that a redaction in it is detected
		var err error
		if in.Documents[0], err = replaceMember(e.env.Payload, "base64", json.RawMessage(`""`)); err != nil {
			return nil, err
		}
		in.Strings = append(in.Strings, e.asset.text)
	}
	out, count, err := e.redactor.Redact(ctx, e.req.Run, in)
	if err != nil {
		return nil, err
	}
	if len(out.Documents) != len(in.Documents) || len(out.Strings) != len(in.Strings) {
		return nil, ErrRedactorAnswer()
	}
	for i, id := range ids {
		if out.Strings[i] != id.text {
			return invalidShape("an id holds a secret", Detail{
				InstancePath: id.path,
				Keyword:      "secret",
				Message:      "must not hold a secret",
			}), nil
		}
	}
	e.redactions = count
	if e.asset != nil {
		if err := e.redactAsset(ctx, out.Strings[len(ids)]); err != nil {
			return nil, err
		}
	}
	if len(e.dataURLBytes) > 0 {
		marker, err := e.findSecret(ctx, e.dataURLBytes)
		if err != nil {
			return nil, err
		}
		if marker != "" {
			if out.Documents[0], err = replaceMember(out.Documents[0], "url", wire.AppendString(nil, marker)); err != nil {
				return nil, err
			}
		}
	}
	if err := e.findEmbeddedSecrets(ctx); err != nil {
		return nil, err
	}
	if err := e.setPreceding(out.Documents[2:]); err != nil {
		return nil, err
	}
	return nil, e.setRedacted(out.Documents[0], out.Documents[1])
}

// ErrRedactorAnswer reports an answer of the redactor that does not match the request.
// Nothing is recorded.
func ErrRedactorAnswer() error {
	return fault.New(fault.ServiceUnavailable, "the redactor returned a different number of texts; nothing was recorded")
}

// setPreceding stores the redacted preceding events. Their trust is at most the run's.
func (e *execution) setPreceding(redacted []json.RawMessage) error {
	e.preceding = make([]wire.Draft, len(redacted))
	for i, d := range e.req.Preceding {
		line, err := compact(redacted[i])
		if err != nil {
			return fmt.Errorf("redacted %s: %w", d.Type, err)
		}
		d.Payload = line
		if e.req.Untrusted || e.req.Boundary == wire.Untrusted {
			d.Trust = wire.Untrusted
		}
		e.preceding[i] = d
	}
	return nil
}

// compact puts a document on one line: an event is one line of JSON.
func compact(doc json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	err := json.Compact(&b, doc)
	return b.Bytes(), err
}

// redactAsset replaces an asset that contains a secret with the secret's marker.
// redacted is the asset's base64 after the redactor. Bytes with a gap are not a valid
// asset, and the model is not at fault, so the whole asset goes.
//
// The redactor finds registered secrets in base64. To find others, such as a secret
// in another encoding, the decoded bytes are redacted too.
func (e *execution) redactAsset(ctx context.Context, redacted string) error {
	c := e.asset
	found := ""
	if redacted != c.text {
		found = firstMarker(redacted)
	} else {
		var err error
		if found, err = e.findSecret(ctx, c.data); err != nil {
			return err
		}
	}
	if found != "" {
		*c = mediaAsset{secret: found}
	}
	return nil
}

// findSecret returns the marker of a secret in an asset's bytes; empty means none.
func (e *execution) findSecret(ctx context.Context, data []byte) (string, error) {
	texts := possibleTexts(data)
	out, count, err := e.redactor.Redact(ctx, e.req.Run, Texts{Strings: texts, Registration: e.req.Registration})
	if err != nil {
		return "", err
	}
	if len(out.Strings) != len(texts) {
		return "", ErrRedactorAnswer()
	}
	for i, text := range texts {
		if out.Strings[i] != text {
			e.redactions += count
			return firstMarker(out.Strings[i]), nil
		}
	}
	return "", nil
}

// invalidText replaces bytes that are not UTF-8. It has one byte, so that a text is
// not longer than the asset.
const invalidText = "?"

// possibleTexts returns the texts that the bytes may contain: as UTF-8, and as UTF-16,
// in which ASCII characters have a zero byte each.
func possibleTexts(data []byte) []string {
	out := []string{strings.ToValidUTF8(string(data), invalidText)}
	if bytes.IndexByte(data, 0) >= 0 {
		out = append(out, strings.ToValidUTF8(strings.ReplaceAll(string(data), "\x00", ""), invalidText))
	}
	return out
}

// markerPrefix begins every marker.
const markerPrefix = "[REDACTED"

// firstMarker returns the first marker in a redacted text.
func firstMarker(text string) string {
	const begin, unnamed = markerPrefix + ":", markerPrefix + "]"
	_, rest, found := strings.Cut(text, begin)
	id, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return unnamed
	}
	return begin + id + "]"
}

// setRedacted stores the redacted payload and meta.
func (e *execution) setRedacted(payload, metaDoc json.RawMessage) error {
	line, err := compact(payload)
	if err != nil {
		return fmt.Errorf("redacted payload: %w", err)
	}
	e.env.Payload = line
	if metaDoc, err = compact(metaDoc); err != nil {
		return fmt.Errorf("redacted meta: %w", err)
	}
	e.env.Meta = metaDoc
	trust := e.meta.ContentTrust
	e.meta = meta{}
	if err := json.Unmarshal(metaDoc, &e.meta); err != nil {
		return fmt.Errorf("redacted meta: %w", err)
	}
	e.meta.ContentTrust = trust // an enum, validated by the shape step
	e.attrs.Traceparent = e.req.Traceparent
	e.setTraceparent()
	return nil
}

// redactRefusal removes secrets from a refusal and from the envelope's attributes.
func (e *execution) redactRefusal(ctx context.Context, r *Refusal) error {
	texts := []*string{&r.Message, &r.RefusedType, &e.attrs.Kind}
	for i := range r.Details {
		texts = append(texts, &r.Details[i].InstancePath, &r.Details[i].Message)
	}
	for i := range r.AllowedKinds { // a contract may list any string
		texts = append(texts, &r.AllowedKinds[i])
	}
	ids := []*string{&e.attrs.EnvelopeID, &e.attrs.CorrelationID, &e.attrs.NodeID, &e.attrs.Traceparent}
	texts = append(texts, ids...)

	in := Texts{Registration: e.req.Registration}
	for _, t := range texts {
		in.Strings = append(in.Strings, *t)
	}
	out, _, err := e.redactor.Redact(ctx, e.req.Run, in)
	if err != nil {
		return err
	}
	if len(out.Strings) != len(texts) {
		return ErrRedactorAnswer()
	}
	for i, t := range texts {
		if i >= len(texts)-len(ids) && out.Strings[i] != *t {
			out.Strings[i] = "" // a redacted id identifies nothing
		}
		*t = out.Strings[i]
	}
	return nil
}
