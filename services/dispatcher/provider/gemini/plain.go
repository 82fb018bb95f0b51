package gemini

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// plain returns an event's document with the members that are read, in the types that the SDK reads: one
// member of another type would cost it the whole event. The counts of tokens are returned apart; nil if
// there are none. Gateways also put documents into one of their own.
func plain(doc []byte) (read []byte, counts map[string]int64) {
	m := strictjson.Object(doc)
	if inner := strictjson.Object(m["response"]); inner["candidates"] != nil && m["candidates"] == nil {
		m = inner
	}
	candidates, usage := m["candidates"], strictjson.Object(m["usageMetadata"])
	if candidates == nil && usage == nil {
		return doc, nil
	}
	out := map[string]any{}
	for _, name := range []string{"error", "promptFeedback"} {
		if m[name] != nil {
			out[name] = m[name]
		}
	}
	if model, ok := strictjson.String(m["modelVersion"]); ok {
		out["modelVersion"] = model
	}
	if counts = numbers(usage); len(counts) == 0 {
		counts = nil
	}
	var list []json.RawMessage
	_ = json.Unmarshal(candidates, &list) // another value has none
	plainList := []map[string]any{}
	for _, raw := range list {
		if c := strictjson.Object(raw); c != nil {
			plainList = append(plainList, plainCandidate(c))
		}
	}
	out["candidates"] = plainList
	return strictjson.RenderPlain(out), counts
}

func plainCandidate(c map[string]json.RawMessage) map[string]any {
	out := map[string]any{}
	if n, ok := number(c["index"]); ok {
		out["index"] = min(n, maxIndex)
	}
	if reason, ok := strictjson.String(c["finishReason"]); ok {
		out["finishReason"] = reason
	}
	if c["content"] != nil {
		out["content"] = plainContent(c["content"])
	}
	if c["safetyRatings"] != nil {
		out["safetyRatings"] = c["safetyRatings"]
	}
	return out
}

// plainContent returns content with a list of parts: gateways leave out the list of one, write a flag as text,
// null for no text, and the arguments of a call as JSON text.
func plainContent(raw json.RawMessage) any {
	content := strictjson.Object(raw)
	var list []json.RawMessage
	switch strictjson.KindOf(content["parts"]) {
	case "an array":
		_ = json.Unmarshal(content["parts"], &list) // it is one
	case "an object":
		list = []json.RawMessage{content["parts"]}
	default:
		return raw
	}
	parts := []map[string]any{}
	for _, item := range list {
		part := strictjson.Object(item)
		if part == nil {
			continue
		}
		out := map[string]any{}
		for name, value := range part {
			out[name] = value
		}
		if string(part["text"]) == "null" {
			delete(out, "text")
		}
		if word, ok := strictjson.String(part["thought"]); ok {
			out["thought"] = word == "true"
		}
		if call := strictjson.Object(part["functionCall"]); call != nil {
			if text, ok := strictjson.String(call["args"]); ok && strictjson.Object(json.RawMessage(text)) != nil {
				call["args"] = json.RawMessage(text)
			}
			out["functionCall"] = call
		}
		parts = append(parts, out)
	}
	out := map[string]any{"parts": parts}
	if content["role"] != nil {
		out["role"] = content["role"]
	}
	return out
}

// numbers returns the members that are numbers.
func numbers(m map[string]json.RawMessage) map[string]int64 {
	out := map[string]int64{}
	for name, raw := range m {
		if n, ok := number(raw); ok {
			out[name] = n
		}
	}
	return out
}

const (
	// maxNumber limits counts: no answer has as many tokens.
	maxNumber = 1 << 40
	// maxIndex is larger than any index of a candidate.
	maxIndex = 1 << 20
)

// number reads an integer in any notation, also as text.
func number(raw json.RawMessage) (n int64, ok bool) {
	f, err := json.Number(outbound.PlainText(raw)).Float64()
	if err != nil {
		return 0, false
	}
	return int64(min(max(f, 0), maxNumber)), true
}
