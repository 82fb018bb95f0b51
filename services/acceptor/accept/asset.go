package accept

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
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

// DefaultMaxMediaBytes is how long the base64 of an asset may be, in characters:
// what the protocol's reference host takes (OpenWOP envelope contract §23.5).
const DefaultMaxMediaBytes = 8 << 20

func (p Policy) maxMedia() int {
	if p.MaxMediaBytes == 0 {
		return DefaultMaxMediaBytes
	}
	return p.MaxMediaBytes
}

// measured gives the length of the asset within a document that nobody has
// looked at, and refuses one that is too long before any of it is decoded
// (OpenWOP envelope contract §26 case 5). 0: there is none.
func (p *passage) measured(doc []byte) (length int, refusal *Refusal) {
	raw, _ := strictjson.Member(doc, "type")
	var kind string
	if len(raw) > maxTypeLength || json.Unmarshal(raw, &kind) != nil || !isMedia(kind) {
		return 0, nil
	}
	payload, _ := strictjson.Member(doc, "payload")
	text, _ := strictjson.Member(payload, "base64")
	if !isText(text) { // what is no base64 counts as any other member does
		return 0, nil
	}
	length = len(text) - len(`""`)
	if most := p.policy.maxMedia(); length > most {
		id, _ := strictjson.Member(doc, "envelopeId")
		correlation, _ := strictjson.Member(doc, "correlationId")
		p.peek(map[string]json.RawMessage{"type": raw, "envelopeId": id, "correlationId": correlation})
		return 0, tooLargeMedia("base64", fmt.Sprintf("has %d characters; at most %d are taken", length, most))
	}
	return length, nil
}

// isText reports a member whose value is a string.
func isText(raw json.RawMessage) bool { return len(raw) >= len(`""`) && raw[0] == '"' }

// inline are the members of a media payload that matter here.
type inline struct {
	Base64   *string     `json:"base64"`
	Bytes    json.Number `json:"bytes"`
	URL      string      `json:"url"`
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
	if refusal != nil {
		return refusal
	}
	if refusal := p.withinURL(m.URL); refusal != nil || m.Base64 == nil {
		return refusal
	}
	if said, ok := integerOf(m.Bytes); !ok || said != int64(len(data)) {
		return wrongMedia("bytes", "equal", fmt.Sprintf("must be the size of the decoded base64, which is %d", len(data)))
	}
	if p.assets == nil && !p.fitsInline(len(data), len(p.env.Payload)) {
		return tooLargeMedia("base64", fmt.Sprintf("has %d bytes when decoded; at most %d are recorded, and this host keeps none elsewhere",
			len(data), p.policy.MaxInlineBytes))
	}
	p.carried = &carried{text: *m.Base64, data: data}
	return nil
}

// carried is an asset on its way from the payload to where it is kept.
type carried struct {
	text string // base64
	data []byte
	// secret is the marker of a secret that was found in it; empty: none was.
	secret string
}

// maxJudged is how much of the base64 of an asset its kind's schema gets to see:
// a schema is made for documents, and a pattern over megabytes costs too much.
const maxJudged = 64 << 10

// shortened is the payload with no more of an asset than its schema may see.
func (p *passage) shortened(payload []byte) []byte {
	if !isMedia(p.env.Type) || len(payload) <= maxJudged {
		return payload
	}
	text, _ := strictjson.Member(payload, "base64")
	if len(text) <= maxJudged || !isText(text) {
		return payload
	}
	text = append(text[:maxJudged:maxJudged], '"')
	if i := bytes.LastIndexByte(text[maxJudged-6:], '\\'); i >= 0 { // an escape that is cut
		text = append(text[:maxJudged-6+i:maxJudged-6+i], '"')
	}
	less, err := replaced(payload, "base64", text)
	if err != nil {
		return payload
	}
	return less
}

const scheme = "data:"

// withinURL refuses an asset in a data: URL that is above the inline cap: its
// bytes would stand in the log, and no URL of ours could take their place. Those of
// a smaller one are looked into as well.
func (p *passage) withinURL(address string) *Refusal {
	if len(address) < len(scheme) || !strings.EqualFold(address[:len(scheme)], scheme) {
		return nil
	}
	p.embedded = embeddedIn(address[len(scheme):])
	if n := len(address) - len(scheme); n*3/4 > p.policy.MaxInlineBytes {
		return tooLargeMedia("url", fmt.Sprintf("is a data: URL of %d characters; put an asset of more than %d bytes into base64", n, p.policy.MaxInlineBytes))
	}
	return nil
}

// embeddedIn is what a data: URL holds (RFC 2397), as far as it can be read: also one
// that is not quite right may be read by somebody.
func embeddedIn(rest string) []byte {
	head, body, _ := strings.Cut(rest, ",")
	if plain, err := url.PathUnescape(body); err == nil {
		body = plain
	}
	if !strings.HasSuffix(strings.ToLower(strings.TrimSpace(head)), ";base64") {
		return []byte(body)
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, err := enc.DecodeString(strings.TrimRight(body, "=")); err == nil {
			return data
		}
	}
	return []byte(body)
}

// fitsInline reports that an asset of so many bytes may stand in the log, and
// the payload with it.
func (p *passage) fitsInline(asset, payload int) bool {
	return asset <= p.policy.MaxInlineBytes && payload <= MaxPayloadBytes
}

// inlined decodes the asset of a payload that nothing was taken out of yet.
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
	return refusedMedia("the asset in the payload is not what the payload says", member, keyword, message)
}

func tooLargeMedia(member, message string) *Refusal {
	return refusedMedia("the asset in the payload is too large: its "+member+" "+message, member, "maxLength", message)
}

func refusedMedia(reason, member, keyword, message string) *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.EnvelopeInvalid, Message: reason,
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

// asset decides where the asset of an accepted envelope goes: back into its
// payload, or to where assets are kept, with its URL in the payload. It is the
// first half of routing: only an envelope that is fresh gets here, and what the
// URL names is there before the event that tells of it. Of an asset that held a
// secret only the marker is left.
func asset(ctx context.Context, p *passage) (_ *Refusal, err error) {
	c := p.carried
	if c == nil {
		return nil, nil
	}
	switch {
	case c.secret != "":
		p.env.Payload, err = replaced(p.env.Payload, "base64", wire.AppendString(nil, c.secret))
	case p.assets == nil || p.fitsInline(len(c.data), len(p.env.Payload)+len(c.text)):
		p.env.Payload, err = replaced(p.env.Payload, "base64", wire.AppendString(nil, c.text))
	default:
		var m inline
		if err := strictjson.Read(p.env.Payload, &m); err != nil {
			return nil, fmt.Errorf("read a redacted payload: %w", err)
		}
		var url string
		url, err = p.assets.Keep(ctx, p.req.Place, p.env.CorrelationID, Asset{
			Data: c.data, MimeType: m.MimeType, Name: m.Name, Attachment: p.env.Type == KindFile,
		})
		if err != nil {
			return nil, err
		}
		p.env.Payload, err = byReference(p.env.Payload, url)
	}
	p.carried = nil // the step is taken again after a lost race to record
	return nil, err
}

// byReference is the payload with the URL in the place of the bytes. A URL that
// was there already says something else and goes.
func byReference(payload []byte, url string) ([]byte, error) {
	var o object
	err := members(payload, func(name string, raw json.RawMessage) {
		switch name {
		case "url":
		case "base64":
			o.raw("url", wire.AppendString(nil, url))
		default:
			o.raw(name, raw)
		}
	})
	return o.close(), err
}

// replaced is the payload with another value for one of its members.
func replaced(payload []byte, member string, value json.RawMessage) ([]byte, error) {
	var o object
	err := members(payload, func(name string, raw json.RawMessage) {
		if name == member {
			raw = value
		}
		o.raw(name, raw)
	})
	return o.close(), err
}

// members tells the members of an object in their order.
func members(payload []byte, tell func(name string, raw json.RawMessage)) error {
	dec := json.NewDecoder(bytes.NewReader(payload))
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("read a payload that has the shape: %w", err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return fmt.Errorf("read a payload that has the shape: %w", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("read a payload that has the shape: %w", err)
		}
		name, _ := key.(string)
		tell(name, raw)
	}
	return nil
}
