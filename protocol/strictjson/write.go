package strictjson

import (
	"bytes"
	"encoding/json"
)

// Render renders one of the caller's own types, or a value read from JSON. It panics on any other
// value, which is a bug. HTML characters are escaped, as in encoding/json.
func Render(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("strictjson: value is not valid JSON: " + err.Error())
	}
	return b
}

// RenderPlain is Render without HTML escaping, so that text stays unchanged.
func RenderPlain(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("strictjson: value is not valid JSON: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// String returns a JSON string; ok is false for any other value.
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
	err := json.Unmarshal(raw, &text) // accepts more, such as lone surrogates
	return text, err == nil
}

// Object returns the members of an object; nil for any other value.
func Object(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if Read(raw, &members) != nil {
		return nil
	}
	return members
}
