package gemini

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// contentsOf returns the system text and the turns of a request.
//
// The vendor has one system text and two roles. System messages are added to the request's system
// text. Tool results become the user's: the vendor's form of a result requires the call, which a
// message does not have. Adjacent messages of one role are one turn. A system text alone becomes
// the turn, because the vendor requires one.
func contentsOf(req provider.Request) (*genai.Content, []*genai.Content, error) {
	system := &genai.Content{Parts: appendText(nil, req.System)}
	var turns []*genai.Content
	for i, m := range req.Messages {
		parts, err := partsOf(m, fmt.Sprintf("messages[%d]", i))
		switch {
		case err != nil:
			return nil, nil, err
		case m.Role == "system":
			system.Parts = append(system.Parts, parts...)
		case len(parts) > 0:
			turns = addTurn(turns, roleOf(m), parts)
		}
	}
	if len(turns) == 0 {
		if len(system.Parts) == 0 {
			return nil, nil, &provider.Error{
				Code:    provider.CodeInvalidRequest,
				Message: "messages: all are empty; say something in one",
			}
		}
		return nil, []*genai.Content{{Role: genai.RoleUser, Parts: system.Parts}}, nil
	}
	if len(system.Parts) == 0 {
		return nil, turns, nil
	}
	return system, turns, nil
}

func roleOf(m provider.Message) string {
	if m.Role == "assistant" {
		return genai.RoleModel
	}
	return genai.RoleUser
}

// addTurn adds parts to the last turn if it has the same role, else to a new one.
func addTurn(turns []*genai.Content, role string, parts []*genai.Part) []*genai.Content {
	if n := len(turns); n > 0 && turns[n-1].Role == role {
		turns[n-1].Parts = append(turns[n-1].Parts, parts...)
		return turns
	}
	return append(turns, &genai.Content{Role: role, Parts: parts})
}

// appendText adds a text unless it is empty, which the vendor rejects.
func appendText(parts []*genai.Part, text string) []*genai.Part {
	if text == "" {
		return parts
	}
	return append(parts, &genai.Part{Text: text})
}

func partsOf(m provider.Message, at string) ([]*genai.Part, error) {
	blocks, err := m.Parts()
	if err != nil {
		e, ok := provider.As(err)
		if !ok {
			return nil, err
		}
		return nil, &provider.Error{Code: e.Code, Message: at + "." + e.Message}
	}
	var out []*genai.Part
	for i, b := range blocks {
		if b.Kind == provider.PartText {
			out = appendText(out, b.Text)
			continue
		}
		p, err := mediaPart(b, m.Role, fmt.Sprintf("%s.content[%d]", at, i))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// mediaPart converts an image, a sound or a file, by its bytes or its address.
func mediaPart(b provider.Part, role, at string) (*genai.Part, error) {
	refuse := func(format string, args ...any) (*genai.Part, error) {
		return nil, &provider.Error{Code: provider.CodeUnsupportedModality, Message: at + ": " + fmt.Sprintf(format, args...)}
	}
	if role == "system" {
		return refuse("a system text holds no %s; put it into a user's message", b.Kind)
	}
	if b.MIME != "" && !acceptsType(b.MIME) {
		return refuse("Gemini takes no %s; want an image as PNG, JPEG, WebP or HEIC, audio, video, PDF or text", b.MIME)
	}
	if b.URL == "" {
		return &genai.Part{InlineData: &genai.Blob{MIMEType: b.MIME, Data: b.Data}}, nil
	}
	if !strings.HasPrefix(b.URL, "https://") {
		return refuse("Gemini fetches https addresses alone; send the data itself")
	}
	return &genai.Part{FileData: &genai.FileData{FileURI: b.URL, MIMEType: b.MIME}}, nil
}

// acceptedTypes are the types that the vendor's models accept in addition to audio, video and text.
var acceptedTypes = []string{
	"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
	"application/pdf", "application/json", "application/rtf", "application/x-javascript", "application/x-python",
}

func acceptsType(mimeType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(mimeType), "/")
	return slices.Contains([]string{"audio", "video", "text"}, kind) || slices.Contains(acceptedTypes, strings.ToLower(mimeType))
}
