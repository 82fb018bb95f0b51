package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/test/double/vendor"
)

// part is a content block of an answer, split into the streamed pieces.
type part struct {
	kind, id, name string
	pieces         []string
	raw            json.RawMessage // set for a block sent in one piece
}

// made is the answer composed for one request.
type made struct {
	parts              []part
	reason, sequence   string
	thoughts, answered int // tokens
}

// compose joins the reply's parts and cuts them at the request's max_tokens.
func (r Reply) compose(req request) made {
	var m made
	if len(r.Thoughts) > 0 && req.thinks() {
		m.parts = append(m.parts, part{kind: "thinking", pieces: r.Thoughts})
	}
	forced := req.forced()
	switch {
	case len(r.Pieces) > 0 && forced != "" && len(r.ToolCalls) == 0:
		m.parts = append(m.parts, part{kind: "tool_use", id: "toolu_double_0", name: forced, pieces: r.Pieces})
	case len(r.Pieces) > 0:
		m.parts = append(m.parts, part{kind: "text", pieces: r.Pieces})
	}
	for i, t := range r.ToolCalls {
		p := part{kind: "tool_use", id: t.ID, name: t.Name, pieces: halves(t.Input)}
		if p.id == "" {
			p.id = fmt.Sprintf("toolu_double_%d", i+1)
		}
		m.parts = append(m.parts, p)
	}
	for _, b := range r.Blocks {
		m.parts = append(m.parts, part{raw: b})
	}
	m.cut(req.MaxTokens)
	m.stops(r)
	return m
}

// stops sets the stop reason.
func (m *made) stops(r Reply) {
	m.sequence = r.StopSequence
	switch {
	case r.Refusal != nil:
		m.reason = "refusal"
	case m.reason != "": // cut
	case r.StopReason != "":
		m.reason = r.StopReason
	case r.StopSequence != "":
		m.reason = "stop_sequence"
	default:
		m.reason = "end_turn"
		for _, p := range m.parts {
			if p.kind == "tool_use" {
				m.reason = "tool_use"
			}
		}
	}
}

// tokenRunes is the length of a token as this server counts.
const tokenRunes = 4

// tokens counts a text's tokens.
func tokens(s string) int { return (len([]rune(s)) + tokenRunes - 1) / tokenRunes }

// cut ends the answer at its max_tokens, as the vendor's models do.
func (m *made) cut(most int) {
	left := most * tokenRunes
	for i := range m.parts {
		p := &m.parts[i]
		all := strings.Join(p.pieces, "")
		if n := len([]rune(all)); n > left {
			p.pieces = shorten(p.pieces, left)
			m.parts, m.reason = m.parts[:i+1], "max_tokens"
			all = strings.Join(p.pieces, "")
		}
		left -= tokens(all) * tokenRunes
		m.answered += tokens(all)
		if p.kind == "thinking" {
			m.thoughts += tokens(all)
		}
		if m.reason != "" {
			return
		}
	}
}

// shorten returns the first runes of the pieces.
func shorten(pieces []string, runes int) []string {
	var out []string
	for _, p := range pieces {
		r := []rune(p)
		if len(r) >= runes {
			return append(out, string(r[:runes]))
		}
		out, runes = append(out, p), runes-len(r)
	}
	return out
}

// halves cuts a text into two pieces, as the vendor streams tool inputs.
func halves(s string) []string {
	r := []rune(s)
	if len(r) < 2 {
		return []string{s}
	}
	return []string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

// instance returns a smallest valid document of a strict schema.
func instance(schema json.RawMessage) string {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return "{}"
	}
	return string(vendor.JSON(instanceOf(root, root)))
}

func instanceOf(root map[string]any, v any) any {
	s, _ := v.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return instanceOf(root, resolve(root, ref))
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	if list, ok := s["anyOf"].([]any); ok && len(list) > 0 {
		return instanceOf(root, list[0])
	}
	kind := s["type"]
	if list, ok := kind.([]any); ok && len(list) > 0 {
		kind = list[0]
	}
	switch kind {
	case "object":
		props, _ := s["properties"].(map[string]any)
		out := map[string]any{}
		for name, p := range props {
			out[name] = instanceOf(root, p)
		}
		return out
	case "array":
		return []any{instanceOf(root, s["items"])}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "null":
		return nil
	default:
		return textOf(s["format"])
	}
}

// textOf returns a text of a format.
func textOf(format any) string {
	switch format {
	case "date":
		return "2026-01-02"
	case "time":
		return "03:04:05Z"
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "duration":
		return "P1D"
	case "email":
		return "a@example.com"
	case "hostname":
		return "example.com"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "uri":
		return "https://example.com/a"
	case "uuid":
		return "00000000-0000-4000-8000-000000000000"
	}
	return "text"
}

// resolve returns the target of a reference within the schema.
func resolve(root map[string]any, ref string) any {
	var at any = root
	for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if step == "" {
			continue
		}
		m, _ := at.(map[string]any)
		at = m[jsonpointer.Unescape(step)]
	}
	return at
}
