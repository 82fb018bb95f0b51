package accept

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/dataurl"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// This file handles assets in payloads of other kinds than media: texts that are data: URLs. Like the
// assets of the media kinds they are searched for secrets, and stored outside the log above the inline
// limit (OpenWOP envelope contract §11, §17).

// embeddedAsset is such a text.
type embeddedAsset struct {
	path string // in the payload
	data []byte
	// secret is the marker of a secret that was found in the bytes; empty means none.
	secret string
}

// dataURL matches payloads that may contain a data: URL. An escape can hide one.
var dataURL = regexp.MustCompile(`(?i)data:|\\u`)

// findEmbedded finds the data: URLs of a validated payload. Without a store, one above the inline limit
// is refused.
func (e *execution) findEmbedded() *Refusal {
	e.embedded = nil
	if isMedia(e.env.Type) || !dataURL.Match(e.env.Payload) {
		return nil
	}
	var refusal *Refusal
	mapTexts(e.env.Payload, "", func(path, text string) string {
		if dataurl.Head(text) == 0 {
			return text
		}
		if _, known := e.embedded[text]; known {
			return text
		}
		a := &embeddedAsset{path: path, data: decodeDataURL(text)}
		if e.embedded == nil {
			e.embedded = map[string]*embeddedAsset{}
		}
		e.embedded[text] = a
		if e.assets == nil && len(a.data) > e.policy.MaxInlineBytes && refusal == nil {
			refusal = e.tooLarge(a)
		}
		return text
	})
	return refusal
}

func (e *execution) tooLarge(a *embeddedAsset) *Refusal {
	r := mediaTooLarge("", fmt.Sprintf("has %d bytes; the limit is %d, since this host has no store for larger assets", len(a.data), e.policy.MaxInlineBytes))
	r.Message = "a data: URL in the payload is too large"
	r.Details[0].InstancePath, r.Details[0].SchemaPath = "/payload"+a.path, ""
	return r
}

// findEmbeddedSecrets searches the bytes of the data: URLs for secrets. The redactor has searched the
// text of the payload, in which they are encoded.
func (e *execution) findEmbeddedSecrets(ctx context.Context) error {
	var (
		texts []string
		of    []*embeddedAsset
	)
	for _, a := range e.embedded {
		for _, text := range possibleTexts(a.data) {
			texts, of = append(texts, text), append(of, a)
		}
	}
	for from := 0; from < len(texts); from += maxTexts {
		part := texts[from:min(from+maxTexts, len(texts))]
		out, _, err := e.redactor.Redact(ctx, e.req.Run, Texts{Strings: part, Registration: e.req.Registration})
		if err != nil {
			return err
		}
		if len(out.Strings) != len(part) {
			return ErrRedactorAnswer()
		}
		for i, text := range out.Strings {
			if text != part[i] && of[from+i].secret == "" {
				of[from+i].secret = firstMarker(text)
				e.redactions++
			}
		}
	}
	return nil
}

// maxTexts limits the texts of one request to the redactor, which accepts a thousand.
const maxTexts = 500

// storeEmbedded replaces the data: URLs of the payload: those above the inline limit by the URL of the
// stored asset, those with a secret by its marker.
func (e *execution) storeEmbedded(ctx context.Context) error {
	if len(e.embedded) == 0 {
		return nil
	}
	changed := e.embeddedChanged()
	var failed error
	payload := mapTexts(e.env.Payload, "", func(_, text string) string {
		a, ok := e.embedded[text]
		switch {
		case failed != nil:
		case !ok && changed && isRedactedDataURL(text): // a gap makes the asset useless
			return firstMarker(text)
		case !ok:
		case a.secret != "":
			return a.secret
		case e.assets != nil && len(a.data) > e.policy.MaxInlineBytes:
			var url string
			if url, failed = e.assets.Save(ctx, e.req.Target, e.env.CorrelationID, Asset{
				Data: a.data, MimeType: typeOfDataURL(text),
			}); failed == nil {
				return url
			}
		}
		return text
	})
	if failed != nil {
		return failed
	}
	e.env.Payload, e.embedded = payload, nil // the step runs again after a lost race to record
	return nil
}

// embeddedChanged reports whether the redactor has removed a secret from the text of a data: URL.
func (e *execution) embeddedChanged() bool {
	found := map[string]bool{}
	mapTexts(e.env.Payload, "", func(_, text string) string {
		if _, ok := e.embedded[text]; ok {
			found[text] = true
		}
		return text
	})
	return len(found) < len(e.embedded)
}

// isRedactedDataURL reports whether a text with a marker may have been a data: URL. The marker may
// replace any part of the head, so the rest need not be one.
func isRedactedDataURL(text string) bool {
	return dataurl.HasScheme(text) && strings.Contains(text, markerPrefix) &&
		!strings.ContainsAny(text[len("data:"):len("data:")+1], " \t\r\n")
}

// typeOfDataURL returns the media type of a data: URL; empty if it has none.
func typeOfDataURL(text string) string {
	head, _ := dataurl.Cut(text)
	head, _, _ = strings.Cut(head, ";") // parameters may be malformed
	typ, _, err := mime.ParseMediaType(head)
	if err != nil || !strings.Contains(typ, "/") {
		return ""
	}
	return typ
}

// mapTexts returns a value with each text replaced by f; names stay. The rest keeps its bytes.
func mapTexts(raw json.RawMessage, path string, f func(path, text string) string) json.RawMessage {
	switch trimmed := bytes.TrimLeft(raw, " \t\r\n"); {
	case bytes.HasPrefix(trimmed, []byte(`"`)):
		text, ok := strictjson.String(raw)
		if !ok {
			return raw
		}
		if mapped := f(path, text); mapped != text {
			return wire.AppendString(nil, mapped)
		}
	case bytes.HasPrefix(trimmed, []byte("{")):
		var w wire.ObjectWriter
		members := 0
		if strictjson.Each(raw, func(name, value []byte) {
			members++
			w.Raw(string(name), mapTexts(value, path+"/"+jsonpointer.Escape(string(name)), f))
		}) && members > 0 {
			return w.Close()
		}
	case bytes.HasPrefix(trimmed, []byte("[")):
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return raw
		}
		for i := range items {
			items[i] = mapTexts(items[i], path+"/"+strconv.Itoa(i), f)
		}
		return strictjson.RenderPlain(items)
	}
	return raw
}
