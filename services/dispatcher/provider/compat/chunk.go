package compat

import (
	"bytes"
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
)

// chunk holds the members that are read of a chunk. Compatible servers deviate from the vendor's API,
// so chunks are read for what they mean: numbers as strings, content as parts, a whole message in
// the place of a delta, usage within the choice.
type chunk struct {
	Model   string
	Usage   *usage // null in all chunks but one
	Choices []choice
	// FinishReason is the reason of the only choice, where it stands outside the choices.
	FinishReason string
	// Error is set if the server fails in the stream. Some servers send it as null in each chunk.
	Error json.RawMessage
}

type choice struct {
	Index        int64
	FinishReason string
	Delta        delta
	// Whole means that Delta is a message and not a piece of one, Final that it is certainly the whole one.
	Whole, Final bool
}

type delta struct {
	// Role is whose message this is; empty for the one before, or the model's.
	Role    string
	Content textPiece
	Refusal string
	// Thought is the model's reasoning, in one of the members that servers use for it.
	Thought   string
	ToolCalls []toolPiece
	Audio     audioPiece
}

// textPiece is a piece of text, or raw if it is a JSON string that begins or ends within a
// character.
type textPiece struct {
	text string
	raw  json.RawMessage
}

// after returns the piece after a text.
func (p textPiece) after(text string) textPiece {
	if p.raw == nil {
		return textPiece{text: text + p.text}
	}
	quoted := strictjson.Render(text)
	return textPiece{raw: append(quoted[:len(quoted)-1], p.raw[1:]...)}
}

type toolPiece struct {
	Index     int64
	ID, Name  string
	Arguments textPiece
	// Whole means that the arguments are all of the call, also those that came before.
	Whole bool
}

type audioPiece struct{ Data, Transcript string }

// isAnswer reports whether the chunk has a part of an answer, or what describes one.
func (c chunk) isAnswer() bool { return len(c.Choices) > 0 || c.Usage != nil || c.FinishReason != "" }

// failed reports whether the chunk is an error.
func (c chunk) failed() bool { return len(c.Error) > 0 }

// read parses a chunk.
func (c *chunk) read(data []byte) error {
	if c.readFast(data) {
		return nil
	}
	*c = chunk{}
	return c.readLoosely(data)
}

// readFast parses the usual form of a chunk in one pass; false if it deviates, or has escapes of which
// one alone may be half a character.
func (c *chunk) readFast(data []byte) bool {
	if bytes.Contains(data, []byte(`\ud`)) || bytes.Contains(data, []byte(`\uD`)) {
		return false
	}
	r := strictjson.Reading(data)
	usual := true
	r.Object(func(name []byte) {
		switch string(name) {
		case "model":
			readText(&r, &c.Model)
		case "choices":
			usual = c.choices(&r) && usual
		case "usage":
			if !r.Null() {
				usual = false
			}
		case "id", "object", "created", "system_fingerprint", "service_tier", "obfuscation":
		default:
			usual = false
		}
	})
	return usual && r.Sound()
}

// readText reads a string; null leaves it unchanged.
func readText(r *strictjson.Cursor, into *string) {
	if !r.Null() {
		*into = r.Text()
	}
}

func (c *chunk) choices(r *strictjson.Cursor) (usual bool) {
	usual = true
	c.Choices = []choice{}
	r.Array(func() {
		c.Choices = append(c.Choices, choice{})
		one := &c.Choices[len(c.Choices)-1]
		r.Object(func(name []byte) {
			switch string(name) {
			case "index":
				r.Set(&one.Index)
			case "finish_reason":
				readText(r, &one.FinishReason)
			case "delta":
				usual = one.Delta.read(r) && usual
			case "logprobs":
			default:
				usual = false
			}
		})
	})
	return usual
}

func (d *delta) read(r *strictjson.Cursor) (usual bool) {
	usual = true
	r.Object(func(name []byte) {
		switch string(name) {
		case "content":
			readText(r, &d.Content.text)
		case "refusal":
			readText(r, &d.Refusal)
		case "reasoning_content":
			readText(r, &d.Thought)
		case "role":
			readText(r, &d.Role)
		default:
			usual = false
		}
	})
	return usual
}
