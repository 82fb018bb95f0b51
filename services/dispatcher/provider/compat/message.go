package compat

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// messagesOf converts the conversation.
func (d Dialect) messagesOf(req provider.Request) ([]openai.ChatCompletionMessageParamUnion, error) {
	var list []openai.ChatCompletionMessageParamUnion
	if req.System != "" {
		list = append(list, openai.SystemMessage(req.System))
	}
	for i, m := range req.Messages {
		if m.Role == "tool" && d == DialectOpenAI {
			return nil, &provider.Error{
				Code:    provider.CodeInvalidRequest,
				Message: fmt.Sprintf("messages[%d].role: OpenAI takes a tool's result only with the id of the call it answers, which a message does not have; give it as user", i),
			}
		}
		content, err := d.content(m)
		if err != nil {
			err.Message = fmt.Sprintf("messages[%d].%s", i, err.Message)
			return nil, err
		}
		// As raw JSON, to keep the author's content unchanged where possible.
		list = append(list, param.Override[openai.ChatCompletionMessageParamUnion](struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}{m.Role, content}))
	}
	return list, nil
}

// block holds the members that identify a content block's form.
type block struct {
	Type string          `json:"type"`
	File json.RawMessage `json:"file"`
}

// native reports whether a block has the form of Chat Completions. It is then sent unchanged,
// including members unknown to the port, such as detail.
func (b block) native() bool {
	return slices.Contains([]string{"text", "image_url", "input_audio"}, b.Type) || b.Type == "file" && len(b.File) > 0
}

// known reports whether the port supports the block's type.
func (b block) known() bool {
	return b.native() || slices.Contains([]string{"image", "audio", "file"}, b.Type)
}

// content converts a message's content.
func (d Dialect) content(m provider.Message) (json.RawMessage, *provider.Error) {
	var raw []json.RawMessage
	if json.Unmarshal(m.Content, &raw) != nil { // a string
		return m.Content, nil
	}
	blocks := make([]block, len(raw))
	for i := range raw {
		_ = strictjson.Read(raw[i], &blocks[i]) // Parts reports the error
	}
	if d == DialectCompatible && slices.ContainsFunc(blocks, func(b block) bool { return !b.known() }) {
		return m.Content, nil // the server may support types that OpenAI does not
	}
	parts, err := m.Parts()
	if err != nil {
		return nil, invalidPart(err)
	}
	verbatim := true
	for i, p := range parts {
		if blocks[i].native() && d == DialectCompatible {
			continue
		}
		said, wrong := d.part(m.Role, p)
		if wrong != "" {
			return nil, &provider.Error{
				Code:    provider.CodeUnsupportedModality,
				Message: fmt.Sprintf("content[%d]: %s", i, wrong),
			}
		}
		if !blocks[i].native() {
			raw[i], verbatim = said, false
		}
	}
	if verbatim {
		return m.Content, nil
	}
	return strictjson.Render(raw), nil
}

// invalidPart converts an error of Parts, which is always a *provider.Error.
func invalidPart(err error) *provider.Error {
	if e, ok := provider.As(err); ok {
		return e
	}
	return &provider.Error{Code: provider.CodeInvalidRequest, Message: "content: cannot be read", Cause: err}
}

// part converts one part, or returns why the vendor rejects it.
func (d Dialect) part(role string, p provider.Part) (said json.RawMessage, wrong string) {
	if p.Kind != provider.PartText && role != "user" && d == DialectOpenAI {
		return nil, fmt.Sprintf("OpenAI takes %s parts from the user alone, not in a message of role %s", p.Kind, role)
	}
	switch p.Kind {
	case provider.PartText:
		return strictjson.Render(map[string]any{"type": "text", "text": p.Text}), ""
	case provider.PartImage:
		return d.image(p)
	case provider.PartAudio:
		return d.audio(p)
	default:
		return file(p)
	}
}

func (d Dialect) image(p provider.Part) (json.RawMessage, string) {
	if d == DialectOpenAI && p.URL == "" && !slices.Contains([]string{
		"image/png", "image/jpeg", "image/webp", "image/gif",
	}, p.MIME) {
		return nil, p.MIME + ": OpenAI takes images as png, jpeg, webp or gif"
	}
	return strictjson.Render(map[string]any{"type": "image_url", "image_url": map[string]string{"url": address(p)}}), ""
}

// formats are the vendor's names of audio formats.
var formats = map[string]string{
	"audio/wav":      "wav",
	"audio/x-wav":    "wav",
	"audio/wave":     "wav",
	"audio/vnd.wave": "wav",
	"audio/mpeg":     "mp3",
	"audio/mp3":      "mp3",
}

func (d Dialect) audio(p provider.Part) (json.RawMessage, string) {
	format := formats[p.MIME]
	switch {
	case p.URL != "":
		return nil, "sound by URL: the vendor takes it as data alone"
	case format == "" && d == DialectOpenAI:
		return nil, p.MIME + ": OpenAI takes sound as wav or mp3"
	case format == "":
		format = strings.TrimPrefix(strings.TrimPrefix(p.MIME, "audio/"), "x-")
	}
	data := base64.StdEncoding.EncodeToString(p.Data)
	return strictjson.Render(map[string]any{
		"type":        "input_audio",
		"input_audio": map[string]string{"data": data, "format": format},
	}), ""
}

func file(p provider.Part) (json.RawMessage, string) {
	if p.URL != "" {
		return nil, "a file by URL: the vendor takes it as data alone"
	}
	name := p.Name
	if name == "" {
		name = "file" // the vendor requires a name
	}
	return strictjson.Render(map[string]any{
		"type": "file",
		"file": map[string]string{"filename": name, "file_data": address(p)},
	}), ""
}

// address returns a part's URL, or its data as a data: URL.
func address(p provider.Part) string {
	if p.URL != "" {
		return p.URL
	}
	return "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}
