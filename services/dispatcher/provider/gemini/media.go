package gemini

import (
	"bytes"
	"mime"
	"strings"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// media are the images and sounds of an answer.
type media struct{ list []provider.Media }

// add adds one item, or the next piece of raw samples.
func (m *media) add(b *genai.Blob) {
	if n := len(m.list); n > 0 && m.list[n-1].MIME == b.MIMEType && isSamples(b.MIMEType) {
		m.list[n-1].Data = append(m.list[n-1].Data, b.Data...)
		return
	}
	m.list = append(m.list, provider.Media{MIME: b.MIMEType, Data: bytes.Clone(b.Data)})
}

// isSamples reports whether pieces of a type can be concatenated.
func isSamples(mimeType string) bool {
	kind, _, err := mime.ParseMediaType(mimeType)
	return err == nil && (kind == "audio/l16" || kind == "audio/pcm")
}

// modalitiesOf returns the output modalities; nil is text. Models with image or audio output are
// recognised by name. Answers with a schema are text.
func modalitiesOf(req provider.Request) []string {
	name := strings.TrimPrefix(req.Model, "models/")
	switch {
	case len(req.Schema) > 0:
		return nil
	case strings.Contains(name, "-tts"):
		return []string{string(genai.ModalityAudio)}
	case strings.Contains(name, "-image"):
		return []string{string(genai.ModalityText), string(genai.ModalityImage)}
	default:
		return nil
	}
}

// thinks reports whether thoughts can be requested from a model. Models without them reject the
// request; unknown names are assumed to have them.
func thinks(model string) bool {
	name := strings.TrimPrefix(model, "models/")
	for _, older := range []string{"gemini-1", "gemini-2.0", "gemini-2.5-flash-image", "gemma"} {
		if strings.HasPrefix(name, older) {
			return false
		}
	}
	return !strings.Contains(name, "-tts")
}
