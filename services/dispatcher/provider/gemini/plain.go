package gemini

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// plain returns an event's document with the members that are read, in the types that the SDK reads: one
// member of another type would cost it the whole event. Gateways also put documents into one of their own.
func plain(doc []byte) []byte {
	m := strictjson.Object(doc)
	if inner := strictjson.Object(m["response"]); inner["candidates"] != nil && m["candidates"] == nil {
		m = inner
	}
	candidates, counts := m["candidates"], strictjson.Object(m["usageMetadata"])
	if candidates == nil && counts == nil {
		return doc
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
	if usage := numbers(counts, func(name string) bool { return strings.HasSuffix(name, "TokenCount") }); len(usage) > 0 {
		out["usageMetadata"] = usage
	}
	var list []json.RawMessage
	_ = json.Unmarshal(candidates, &list) // another value has none
	read := []map[string]any{}
	for _, raw := range list {
		if c := strictjson.Object(raw); c != nil {
			read = append(read, plainCandidate(c))
		}
	}
	out["candidates"] = read
	return strictjson.RenderPlain(out)
}

func plainCandidate(c map[string]json.RawMessage) map[string]any {
	out := map[string]any{}
	for name, n := range numbers(c, func(name string) bool { return name == "index" }) {
		out[name] = n
	}
	if reason, ok := strictjson.String(c["finishReason"]); ok {
		out["finishReason"] = reason
	}
	for _, name := range []string{"content", "safetyRatings"} {
		if c[name] != nil {
			out[name] = c[name]
		}
	}
	return out
}

// numbers returns the members that are integers, in any notation, also as text.
func numbers(m map[string]json.RawMessage, wanted func(name string) bool) map[string]int32 {
	out := map[string]int32{}
	for name, raw := range m {
		const most = 1 << 30
		n, err := json.Number(outbound.PlainText(raw)).Float64()
		if wanted(name) && err == nil && -most < n && n < most {
			out[name] = int32(n)
		}
	}
	return out
}
