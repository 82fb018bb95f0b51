package accept

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"waybill.dev/waybill/protocol/dataurl"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Assets stores assets that are too large for the log.
type Assets interface {
	// Save stores an asset and returns its URL. Saving for the same envelope again
	// returns the same URL. Errors: fault.ServiceUnavailable.
	Save(ctx context.Context, at Target, correlationID string, a Asset) (url string, err error)
}

// Asset is an image, an audio clip or a file.
type Asset struct {
	Data []byte
	// MimeType is the type that the model declared; empty means unknown.
	MimeType string
	// Name is a suggested file name; empty means none.
	Name string
	// Attachment: clients save the asset and do not display it.
	Attachment bool
}

// DefaultMaxInlineBytes limits an asset in the log (OpenWOP envelope contract §17,
// aiProviders.maxInlineMediaBytes).
const DefaultMaxInlineBytes = 256 << 10

// DefaultMaxMediaBytes limits the base64 of an asset, in characters. It is the limit
// of the protocol's reference host (OpenWOP envelope contract §23.5).
const DefaultMaxMediaBytes = 8 << 20

func (p Policy) maxMedia() int {
	if p.MaxMediaBytes == 0 {
		return DefaultMaxMediaBytes
	}
	return p.MaxMediaBytes
}

// measureAsset returns the length of the base64 in a document; 0 means none. It
// refuses an asset that is too long before anything is decoded (OpenWOP envelope
// contract §26 case 5).
func (e *execution) measureAsset(doc []byte) (length int, refusal *Refusal) {
	raw, _ := strictjson.Member(doc, "type")
	var kind string
	if len(raw) > maxTypeLength || json.Unmarshal(raw, &kind) != nil || !isMedia(kind) {
		return 0, nil
	}
	payload, _ := strictjson.Member(doc, "payload")
	text, _ := strictjson.Member(payload, "base64")
	if !isText(text) { // not base64: it counts against the document's limit
		return 0, nil
	}
	length = len(text) - len(`""`)
	if most := e.policy.maxMedia(); length > most {
		id, _ := strictjson.Member(doc, "envelopeId")
		correlation, _ := strictjson.Member(doc, "correlationId")
		e.setIDs(map[string]json.RawMessage{"type": raw, "envelopeId": id, "correlationId": correlation})
		return 0, mediaTooLarge("base64", fmt.Sprintf("has %d characters, the limit is %d", length, most))
	}
	return length, nil
}

// isText reports that a value is a string.
func isText(raw json.RawMessage) bool { return len(raw) >= len(`""`) && raw[0] == '"' }

// mediaPayload are the members of a media payload that the pipeline reads.
type mediaPayload struct {
	Base64   *string     `json:"base64"`
	Bytes    json.Number `json:"bytes"`
	URL      string      `json:"url"`
	MimeType string      `json:"mimeType"`
	Name     string      `json:"name"`
}

// isMedia reports that a kind's payload can contain an asset.
func isMedia(kind string) bool { return kind == KindImage || kind == KindAudio || kind == KindFile }

// checkMedia checks the asset in a payload that satisfies its schema. The asset must
// be base64 and have the declared size. It belongs to step 4b.
func (e *execution) checkMedia() *Refusal {
	if !isMedia(e.env.Type) {
		return nil
	}
	m, data, refusal := e.decodeAsset()
	if refusal != nil {
		return refusal
	}
	if m.Base64 == nil && m.URL == "" {
		return mediaMismatch("", "required", "must have url or base64")
	}
	if refusal := e.checkURL(m.URL); refusal != nil || m.Base64 == nil {
		return refusal
	}
	if declared, ok := integerOf(m.Bytes); !ok || declared != int64(len(data)) {
		return mediaMismatch("bytes", "equal", fmt.Sprintf("must be the size of the decoded base64, which is %d", len(data)))
	}
	if e.assets == nil && !e.fitsInline(len(data), len(e.env.Payload)) {
		return mediaTooLarge("base64", fmt.Sprintf("has %d bytes when decoded; the limit is %d, since this host has no store for larger assets",
			len(data), e.policy.MaxInlineBytes))
	}
	e.asset = &mediaAsset{text: *m.Base64, data: data}
	return nil
}

// mediaAsset is the asset of a payload, until the asset step stores it.
type mediaAsset struct {
	text string // base64
	data []byte
	// secret is the marker of a secret that was found in the asset; empty means none.
	secret string
}

// maxValidatedBase64 limits the base64, in characters, that the kind's schema is
// applied to. A pattern over megabytes costs too much.
const maxValidatedBase64 = 64 << 10

// truncateAsset returns the payload with at most maxValidatedBase64 characters of the
// asset, for validation.
func (e *execution) truncateAsset(payload []byte) []byte {
	if !isMedia(e.env.Type) || len(payload) <= maxValidatedBase64 {
		return payload
	}
	text, _ := strictjson.Member(payload, "base64")
	if len(text) <= maxValidatedBase64 || !isText(text) {
		return payload
	}
	text = append(text[:maxValidatedBase64:maxValidatedBase64], '"')
	if i := bytes.LastIndexByte(text[maxValidatedBase64-6:], '\\'); i >= 0 { // an escape that is cut
		text = append(text[:maxValidatedBase64-6+i:maxValidatedBase64-6+i], '"')
	}
	less, err := replaceMember(payload, "base64", text)
	if err != nil {
		return payload
	}
	return less
}

// checkDataURL refuses an asset in a data: URL above the inline limit: it would be
// recorded in the log, since the asset step replaces base64 only. The bytes are
// decoded, so that the redact step finds secrets in them.
func (e *execution) checkDataURL(address string) *Refusal {
	if !dataurl.HasScheme(address) {
		return nil
	}
	e.dataURLBytes = decodeDataURL(address)
	if n := len(address) - len("data:"); n*3/4 > e.policy.MaxInlineBytes {
		return mediaTooLarge("url", fmt.Sprintf("is a data: URL of %d characters; put an asset of more than %d bytes into base64", n, e.policy.MaxInlineBytes))
	}
	return nil
}

// checkURL refuses addresses that no consumer should open, such as javascript: and file:, and data:
// URLs that are too long.
func (e *execution) checkURL(address string) *Refusal {
	if refusal := e.checkDataURL(address); refusal != nil || address == "" || e.dataURLBytes != nil {
		return refusal
	}
	switch u, err := url.Parse(address); {
	case err != nil:
	case u.Scheme == "https" || u.Scheme == "http":
		if u.Host != "" {
			return nil
		}
	case strings.EqualFold(u.Scheme, "data"): // of no bytes
		return nil
	}
	return mediaMismatch("url", "format", "must be an https:, http: or data: URL")
}

// decodeDataURL decodes a text that begins with data: (RFC 2397). It is lenient, since
// other readers may accept a malformed URL.
func decodeDataURL(address string) []byte {
	head, body := dataurl.Cut(address)
	if plain, err := url.PathUnescape(body); err == nil {
		body = plain
	}
	if !strings.HasSuffix(strings.ToLower(strings.TrimSpace(head)), ";base64") {
		return []byte(body)
	}
	body = withoutSpace(body)
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, err := enc.DecodeString(strings.TrimRight(body, "=")); err == nil {
			return data
		}
	}
	return []byte(body)
}

// withoutSpace removes white space, which readers of base64 skip.
func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }

// fitsInline reports that asset and payload, in bytes, may be recorded in the log.
func (e *execution) fitsInline(asset, payload int) bool {
	return asset <= e.policy.MaxInlineBytes && payload <= MaxPayloadBytes
}

// decodeAsset decodes the asset of the payload.
func (e *execution) decodeAsset() (mediaPayload, []byte, *Refusal) {
	var m mediaPayload
	if err := strictjson.Read(e.env.Payload, &m); err != nil || m.Base64 == nil {
		return m, nil, nil // no asset, or the host replaced the kind's schema
	}
	enc := base64.StdEncoding
	if !strings.HasSuffix(*m.Base64, "=") && len(*m.Base64)%4 != 0 {
		enc = base64.RawStdEncoding
	}
	// Strict and without line breaks, so that an asset has one encoding.
	data, err := enc.Strict().DecodeString(*m.Base64)
	if err != nil || strings.ContainsAny(*m.Base64, "\r\n") {
		return m, nil, mediaMismatch("base64", "contentEncoding", "must be base64 (RFC 4648 §4)")
	}
	return m, data, nil
}

func mediaMismatch(member, keyword, message string) *Refusal {
	return refuseMedia("the asset in the payload does not match its description", member, keyword, message)
}

func mediaTooLarge(member, message string) *Refusal {
	return refuseMedia("the asset in the payload is too large: its "+member+" "+message, member, "maxLength", message)
}

func refuseMedia(reason, member, keyword, message string) *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.EnvelopeInvalid, Message: reason,
		Details: []Detail{{
			InstancePath: strings.TrimSuffix("/payload/"+member, "/"),
			SchemaPath:   "/properties/" + member,
			Keyword:      keyword,
			Message:      message,
		}},
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

// asset stores the asset of the envelope: inline in the payload, or in the asset store
// with its URL in the payload. It is the first half of routing and runs after dedup.
// The asset is stored before the event with its URL is recorded. An asset with a
// secret is replaced with the secret's marker.
func asset(ctx context.Context, e *execution) (_ *Refusal, err error) {
	c := e.asset
	if c == nil {
		return nil, e.storeEmbedded(ctx)
	}
	switch {
	case c.secret != "":
		e.env.Payload, err = replaceMember(e.env.Payload, "base64", wire.AppendString(nil, c.secret))
	case e.assets == nil || e.fitsInline(len(c.data), len(e.env.Payload)+len(c.text)):
		e.env.Payload, err = replaceMember(e.env.Payload, "base64", wire.AppendString(nil, c.text))
	default:
		var m mediaPayload
		if err := strictjson.Read(e.env.Payload, &m); err != nil {
			return nil, fmt.Errorf("read a redacted payload: %w", err)
		}
		var url string
		url, err = e.assets.Save(ctx, e.req.Target, e.env.CorrelationID, Asset{
			Data: c.data, MimeType: m.MimeType, Name: m.Name, Attachment: e.env.Type == KindFile,
		})
		if err != nil {
			return nil, err
		}
		e.env.Payload, err = replaceAssetWithURL(e.env.Payload, url)
	}
	e.asset = nil // the step runs again after a lost race to record
	return nil, err
}

// replaceAssetWithURL returns the payload with url instead of base64. The model's own
// url, if any, is dropped.
func replaceAssetWithURL(payload []byte, url string) ([]byte, error) {
	var w wire.ObjectWriter
	ok := strictjson.Each(payload, func(name, raw []byte) {
		switch string(name) {
		case "url":
		case "base64":
			w.String("url", url)
		default:
			w.Raw(string(name), raw)
		}
	})
	return closed(&w, ok)
}

// replaceMember returns the payload with another value for one of its members.
func replaceMember(payload []byte, member string, value json.RawMessage) ([]byte, error) {
	var w wire.ObjectWriter
	ok := strictjson.Each(payload, func(name, raw []byte) {
		if string(name) == member {
			raw = value
		}
		w.Raw(string(name), raw)
	})
	return closed(&w, ok)
}

func closed(w *wire.ObjectWriter, ok bool) ([]byte, error) {
	if !ok {
		return nil, errors.New("a validated payload is no JSON object")
	}
	return w.Close(), nil
}
