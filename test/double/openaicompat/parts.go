package openaicompat

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// part is one block of a message's content.
type part struct {
	Type     string  `json:"type"`
	Text     *string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	InputAudio *struct{ Data, Format string } `json:"input_audio"`
	File       *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
		ID   string `json:"file_id"`
	} `json:"file"`
}

// content returns what is wrong with a message's content.
func (o Options) content(role string, raw json.RawMessage) string {
	var s *string
	if json.Unmarshal(raw, &s) == nil && s != nil {
		return ""
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return "a string or an array of content parts"
	}
	for _, p := range parts {
		if !slices.Contains([]string{"text", "image_url", "input_audio", "file", "refusal"}, p.Type) {
			return "parts of type 'text', 'image_url', 'input_audio', 'file' or 'refusal'"
		}
		if !o.OpenAI {
			continue
		}
		if role != "user" && p.Type != "text" && (role != "assistant" || p.Type != "refusal") {
			return "text parts in a message of role '" + role + "', not '" + p.Type + "'"
		}
		if want := p.wrong(); want != "" {
			return want
		}
	}
	return ""
}

// wrong returns what OpenAI expected of a part.
func (p part) wrong() string {
	switch {
	case p.Type == "text" && p.Text == nil:
		return "'text' in a part of that type"
	case p.Type == "image_url" && (p.ImageURL == nil || !image(p.ImageURL.URL)):
		return "'image_url.url' with an http(s) address, or data: of a png, jpeg, webp or gif"
	case p.Type == "input_audio" && (p.InputAudio == nil || !decodes(p.InputAudio.Data) || p.InputAudio.Format != "wav" && p.InputAudio.Format != "mp3"):
		return "'input_audio' with base64 'data' and 'format' wav or mp3"
	case p.Type == "file" && (p.File == nil || p.File.ID == "" && (p.File.Name == "" || !located(p.File.Data))):
		return "'file' with 'file_id', or with 'filename' and a data: address as 'file_data'"
	default:
		return ""
	}
}

func image(url string) bool {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return true
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(url, "data:image/"), ";")
	return located(url) && slices.Contains([]string{"png", "jpeg", "webp", "gif"}, kind)
}

func located(url string) bool {
	head, data, ok := strings.Cut(url, ";base64,")
	return ok && strings.HasPrefix(head, "data:") && decodes(data)
}

func decodes(data string) bool {
	b, err := base64.StdEncoding.DecodeString(data)
	return err == nil && len(b) > 0
}
