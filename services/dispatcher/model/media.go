package model

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Kinds of generated media (OpenWOP envelope contract §3.4).
const (
	kindImage = "media.image"
	kindAudio = "media.audio"
	kindFile  = "media.file"
)

// mediaKind returns the kind of a MIME type.
func mediaKind(mime string) string {
	switch {
	case strings.HasPrefix(mime, "image/"):
		return kindImage
	case strings.HasPrefix(mime, "audio/"):
		return kindAudio
	default:
		return kindFile
	}
}

// generatesMedia reports whether a model generates a kind of envelope itself.
func (l *Loop) generatesMedia(kind string, m modelgate.Model) bool {
	var capability modelgate.Capability
	switch kind {
	case kindImage:
		capability = modelgate.ImageOutput
	case kindAudio:
		capability = modelgate.AudioOutput
	default:
		return false
	}
	has, _ := l.hasCapability(m, capability)
	return has
}

type mediaPayload struct {
	Base64   string `json:"base64"`
	Bytes    int    `json:"bytes"`
	MIMEType string `json:"mimeType"`
	Alt      string `json:"alt,omitempty"`
}

// maxAlt limits the alternative text of media, in bytes.
const maxAlt = 1024

// altText returns the text that the model wrote with its media, as their description.
func (e *emission) altText(ctx context.Context, said string) (string, error) {
	said = strings.TrimSpace(said)
	if len(said) <= maxAlt {
		return said, nil
	}
	clean, err := e.redactPrefix(ctx, said, maxAlt)
	return truncateBytes(clean, maxAlt), err
}

// mediaCandidates returns the envelopes of generated media.
func mediaCandidates(media []provider.Media, alt string) []candidate {
	out := make([]candidate, 0, len(media))
	for _, m := range media {
		payload, err := json.Marshal(mediaPayload{base64.StdEncoding.EncodeToString(m.Data), len(m.Data), m.MIME, alt})
		if err != nil { // strings and numbers always render
			continue
		}
		kind := mediaKind(m.MIME)
		hint := map[string]string{"display": strings.TrimPrefix(kind, "media."), "mimeType": m.MIME}
		if alt != "" {
			hint["alt"] = alt // a model's member of the payload, which the hint mirrors
		}
		out = append(out, candidate{
			doc:  document{raw: payload, path: pathDirect},
			kind: kind,
			body: map[string]json.RawMessage{
				"type": wire.AppendString(nil, kind), "payload": payload,
				"meta": strictjson.RenderPlain(map[string]any{"rendering": hint}),
			},
		})
	}
	return out
}

// findCandidates returns the envelopes of an answer's text and of its media. If the requested kind
// is media, the text is no envelope.
func (e *emission) findCandidates(ctx context.Context, docs []document, res provider.Result) ([]candidate, error) {
	if len(res.Media) == 0 {
		return e.newReader(res.Text).candidates(ctx, docs)
	}
	alt, err := e.altText(ctx, res.Text)
	if err != nil {
		return nil, err
	}
	made := mediaCandidates(res.Media, alt)
	if slices.ContainsFunc(made, func(c candidate) bool { return c.kind == e.expected.kind }) {
		return made, nil
	}
	said, err := e.newReader(res.Text).candidates(ctx, docs)
	return append(said, made...), err
}
