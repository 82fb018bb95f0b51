package accept

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Assets keeps what is too large to stand in the log.
type Assets interface {
	// Keep stores an asset and gives its URL. The same envelope gives the same
	// asset each time. Errors: fault.ServiceUnavailable.
	Keep(ctx context.Context, at Place, correlationID string, a Asset) (url string, err error)
}

// Asset is an image, a sound or a file.
type Asset struct {
	Data []byte
	// MimeType is what the model says it is; empty: unknown.
	MimeType string
	// Name is a suggested file name; empty: none.
	Name string
	// Attachment is to be saved, not shown.
	Attachment bool
}

// DefaultMaxInlineBytes is how large an asset may be to stand in the log
// (OpenWOP envelope contract §17, aiProviders.maxInlineMediaBytes).
const DefaultMaxInlineBytes = 256 << 10

// inline are the members of a media payload that matter here.
type inline struct {
	Base64   *string     `json:"base64"`
	Bytes    json.Number `json:"bytes"`
	MimeType string      `json:"mimeType"`
	Name     string      `json:"name"`
}

// isMedia reports a kind whose payload can hold an asset.
func isMedia(kind string) bool { return kind == KindImage || kind == KindAudio || kind == KindFile }

// media checks the asset within a payload that satisfies its schema: it must be
// base64, and as long as it says. It belongs to step 4b.
func (p *passage) media() *Refusal {
	if !isMedia(p.env.Type) {
		return nil
	}
	m, data, refusal := p.inlined()
	if refusal != nil || m.Base64 == nil {
		return refusal
	}
	if said, ok := integerOf(m.Bytes); !ok || said != int64(len(data)) {
		return wrongMedia("bytes", "equal", fmt.Sprintf("must be the size of the decoded base64, which is %d", len(data)))
	}
	return nil
}

// inlined decodes the asset.
func (p *passage) inlined() (inline, []byte, *Refusal) {
	var m inline
	if err := strictjson.Read(p.env.Payload, &m); err != nil || m.Base64 == nil {
		return m, nil, nil // a kind whose schema the host has changed
	}
	enc := base64.StdEncoding
	if !strings.HasSuffix(*m.Base64, "=") && len(*m.Base64)%4 != 0 {
		enc = base64.RawStdEncoding
	}
	// Strict, and no line breaks: one asset has one spelling.
	data, err := enc.Strict().DecodeString(*m.Base64)
	if err != nil || strings.ContainsAny(*m.Base64, "\r\n") {
		return m, nil, wrongMedia("base64", "contentEncoding", "must be base64 (RFC 4648 §4)")
	}
	return m, data, nil
}

func wrongMedia(member, keyword, message string) *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.EnvelopeInvalid, Message: "the asset in the payload is not what the payload says",
		Details: []Detail{{InstancePath: "/payload/" + member, SchemaPath: "/properties/" + member, Keyword: keyword, Message: message}},
	}
}

// integerOf reads a JSON number that is an integer.
func integerOf(n json.Number) (int64, bool) {
	var v integer
	if n == "" || v.UnmarshalJSON([]byte(n)) != nil {
		return 0, false
	}
	return int64(v), true
}

// asset moves an asset that is too large for the log to where assets are kept,
// and puts its URL into the payload. It is the first half of routing: only an
// envelope that is fresh gets here, and what the URL names is there before the
// event that tells of it.
func asset(ctx context.Context, p *passage) (*Refusal, error) {
	if p.assets == nil || !isMedia(p.env.Type) {
		return nil, nil
	}
	m, data, refusal := p.inlined()
	switch {
	case refusal != nil: // a secret in it, and what is left is no base64
		return refusal, nil
	case m.Base64 == nil || len(data) <= p.policy.MaxInlineBytes:
		return nil, nil
	}
	url, err := p.assets.Keep(ctx, p.req.Place, p.env.CorrelationID, Asset{
		Data: data, MimeType: m.MimeType, Name: m.Name, Attachment: p.env.Type == KindFile,
	})
	if err != nil {
		return nil, err
	}
	p.env.Payload, err = byReference(p.env.Payload, url)
	return nil, err
}

// byReference is the payload with the URL in the place of the bytes. A URL that
// was there already says something else and goes.
func byReference(payload []byte, url string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(payload))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read a payload that has the shape: %w", err)
	}
	var o object
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("read a payload that has the shape: %w", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("read a payload that has the shape: %w", err)
		}
		switch name, _ := key.(string); name {
		case "url":
		case "base64":
			o.raw("url", wire.AppendString(nil, url))
		default:
			o.raw(name, raw)
		}
	}
	return o.close(), nil
}
