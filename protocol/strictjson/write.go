package strictjson

import (
	"bytes"
	"encoding/json"
)

// Render writes a value that always can be: one of the caller's own types, or what was
// read from JSON. Any other is a mistake in the code, and panics. Characters that mean
// something in HTML are escaped, as encoding/json does.
func Render(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("strictjson: what was to be rendered is no JSON: " + err.Error())
	}
	return b
}

// RenderPlain is Render with the characters of HTML as they are, so that a text that was
// read stays as it was.
func RenderPlain(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("strictjson: what was to be rendered is no JSON: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// String is the text that a value is; ok is false for any other value.
func String(raw json.RawMessage) (string, bool) {
	s := scanner{b: raw, maxDepth: stored.MaxDepth}
	if s.space(); s.peek() != '"' {
		return "", false
	}
	if span, err := s.text(); err == nil {
		if s.space(); s.i == len(raw) {
			return span.decode(raw), true
		}
	}
	var text string
	err := json.Unmarshal(raw, &text) // which takes more, such as half of a surrogate pair
	return text, err == nil
}

// Object are the members of an object; nil for any other value.
func Object(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if Read(raw, &members) != nil {
		return nil
	}
	return members
}
