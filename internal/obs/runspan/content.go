package runspan

import (
	"encoding/json"
	"unicode/utf8"
)

// maxContent limits each text of a model call, in bytes, so that a batch of spans fits a request.
const maxContent = 32 << 10

const cutMark = "… (cut)"

// answerText is what the log has of a model call: the prompt of prompt.composed, if it is recorded
// in full, and the answer of output.chunk. Both are redacted.
type answerText struct {
	prompt, text string
	// finish is the reason of the last chunk; empty if the answer was not streamed.
	finish string
}

// noteParts notes the prompt or a piece of the answer of a node's next call.
func (f *Fold) noteParts(payload []byte, nodeID string) {
	n := f.nodes[nodeID]
	if n == nil {
		return
	}
	var p struct {
		Composed string `json:"composed"`
		Chunk    string `json:"chunk"`
		Meta     struct {
			FinishReason string `json:"finishReason"`
		} `json:"meta"`
	}
	_ = json.Unmarshal(payload, &p) // an unreadable payload counts as an empty one
	if p.Meta.FinishReason != "" {
		n.said.finish = p.Meta.FinishReason
	}
	if !f.options.Content {
		return
	}
	if p.Composed != "" {
		n.said.prompt, n.said.text = p.Composed, ""
	}
	if len(n.said.text) <= maxContent {
		n.said.text += p.Chunk
	}
}

// message is a message in the form of the conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type    string `json:"type"`
	Content string `json:"content,omitempty"`
}

// addTo adds the texts as attributes: JSON, as the conventions prescribe for spans.
func (a answerText) addTo(attributes map[string]any, finish string) {
	var call struct {
		System   string `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal([]byte(a.prompt), &call) == nil {
		if call.System != "" {
			attributes[genInstructions] = render([]part{{"text", clip(call.System)}})
		}
		messages := make([]message, 0, len(call.Messages))
		for _, m := range call.Messages {
			messages = append(messages, message{Role: m.Role, Parts: partsOf(m.Content)})
		}
		attributes[genMessagesIn] = render(messages)
	}
	if a.text != "" {
		attributes[genMessagesOut] = render([]message{{"assistant", []part{{"text", clip(a.text)}}, finish}})
	}
}

// partsOf converts the content of a message: a text, or blocks of which only texts are shown.
func partsOf(content json.RawMessage) []part {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []part{{"text", clip(text)}}
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks) // other content has no parts
	out := make([]part, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, part{b.Type, clip(b.Text)})
	}
	return out
}

func render(v any) string {
	b, _ := json.Marshal(v) // texts and lists always render
	return string(b)
}

// clip shortens a text at a character boundary.
func clip(s string) string {
	if len(s) <= maxContent {
		return s
	}
	n := maxContent
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}
