package model

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/modelgate"
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

// generatesMedia reports whether the node requests a kind that its model generates itself. Such an
// answer is not JSON, so no schema applies.
func (c *call) generatesMedia() bool {
	capability := map[string]modelgate.Capability{kindImage: modelgate.ImageOutput, kindAudio: modelgate.AudioOutput}[c.expected.kind]
	if capability == "" {
		return false
	}
	has, _ := c.hasCapability(modelgate.Model{Provider: c.req.Provider, Model: c.req.Model}, capability)
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
func (c *call) altText(ctx context.Context, said string) (string, error) {
	said = strings.TrimSpace(said)
	if len(said) <= maxAlt {
		return said, nil
	}
	clean, err := c.redactPrefix(ctx, said, maxAlt)
	return truncateBytes(clean, maxAlt), err
}

// mediaEmissions returns the envelopes of generated media.
func mediaEmissions(media []provider.Media, alt string) []emission {
	out := make([]emission, 0, len(media))
	for _, m := range media {
		payload, err := json.Marshal(mediaPayload{base64.StdEncoding.EncodeToString(m.Data), len(m.Data), m.MIME, alt})
		if err != nil { // strings and numbers always render
			continue
		}
		kind := mediaKind(m.MIME)
		out = append(out, emission{doc: document{raw: payload, path: pathDirect}, kind: kind, body: map[string]json.RawMessage{
			"type": wire.AppendString(nil, kind), "payload": payload,
		}})
	}
	return out
}

// findEmissions returns the envelopes of an answer's text and of its media. If the requested kind
// is media, the text is no envelope.
func (c *call) findEmissions(ctx context.Context, docs []document, res provider.Result) ([]emission, error) {
	if len(res.Media) == 0 {
		return findEnvelopes(docs, c.expected.kind), nil
	}
	alt, err := c.altText(ctx, res.Text)
	if err != nil {
		return nil, err
	}
	made := mediaEmissions(res.Media, alt)
	if slices.ContainsFunc(made, func(e emission) bool { return e.kind == c.expected.kind }) {
		return made, nil
	}
	return append(findEnvelopes(docs, c.expected.kind), made...), nil
}
