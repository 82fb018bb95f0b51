package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// shown are the members of an event that are printed; the log has more.
var shown = map[string][]string{
	"model.capability.substituted":  {"originalProvider", "originalModel", "missingCapabilities", "fallbackProvider", "fallbackModel"},
	"model.capability.insufficient": {"provider", "model", "missingCapabilities", "fallbackAttempted"},
	"node.started":                  {"typeId"},
	"node.completed":                {"outputs.output"},
	"node.failed":                   {"error.code", "error.message"},
	"run.failed":                    {"error.code", "failedNodeId"},
	"provider.usage":                {"provider", "model", "inputTokens", "outputTokens", "costEstimateUsd"},
	"envelope.truncated":            {"stopReason", "outputTokenCount", "partialPayloadAvailable"},
	"envelope.retry.attempted":      {"attempt", "reason", "previousError"},
	"envelope.refusal":              {"provider", "model", "safetyCategory", "refusalText"},
}

const (
	// width is the maximum width of a line, unless a word is longer.
	width = 120
	// indent puts members under the event's type.
	indent = "                "
)

// print writes the case, its log, and what happened.
func (p played) print(out io.Writer) error {
	t := facts{log: p.log, missing: new([]string)}
	story := p.story(t)
	if len(*t.missing) > 0 {
		return fmt.Errorf("run %s: unexpected log, without %s", p.runID, strings.Join(*t.missing, ", "))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%s: %s\nRun %s\n\n", p.name, p.title, p.runID)
	for _, e := range p.log {
		b.WriteString(e.line())
	}
	b.WriteString("\n")
	wrap(&b, "", strings.Fields(story))
	_, err := out.Write(b.Bytes())
	return err
}

// line formats an event: time, type and node, and below them the shown members.
func (e event) line() string {
	var b bytes.Buffer
	b.WriteString(strings.TrimRight(fmt.Sprintf("  %s  %-30s %s", e.Timestamp.UTC().Format("15:04:05.000"), e.Type, e.NodeID), " ") + "\n")
	var members []string
	for _, name := range shown[e.Type] {
		if v, ok := member(e.Payload, name); ok {
			members = append(members, name+"="+v)
		}
	}
	wrap(&b, indent, members)
	return b.String()
}

// wrap writes words in lines of at most width, without splitting words.
func wrap(b *bytes.Buffer, indent string, words []string) {
	line := ""
	for _, w := range words {
		if line != "" && len(indent)+len(line)+1+len(w) > width {
			b.WriteString(indent + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	if line != "" {
		b.WriteString(indent + line + "\n")
	}
}

// member returns a member of a payload as text. Dots in name select members of objects.
func member(payload map[string]any, name string) (string, bool) {
	var at any = payload
	for step := range strings.SplitSeq(name, ".") {
		o, _ := at.(map[string]any)
		var ok bool
		if at, ok = o[step]; !ok {
			return "", false
		}
	}
	switch v := at.(type) {
	case string:
		if v != "" && !strings.ContainsAny(v, " \"\n") {
			return v, true
		}
		if !strings.ContainsAny(v, "'\\\n") {
			return "'" + v + "'", true // readable with quotes inside
		}
	case json.Number:
		return v.String(), true
	}
	return quoted(at), true
}

// quoted encodes a value as JSON without escaping HTML.
func quoted(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // impossible: v was decoded from JSON
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// facts returns values of the log for a story.
type facts struct {
	log []event
	// missing collects values that the log does not have.
	missing *[]string
}

// at returns a member of the first event of a type.
func (t facts) at(eventType, name string) string { return t.find(t.log, eventType, name) }

// last returns a member of the last event of a type.
func (t facts) last(eventType, name string) string {
	for i := len(t.log) - 1; i >= 0; i-- {
		if t.log[i].Type == eventType {
			return t.find(t.log[i:], eventType, name)
		}
	}
	return t.find(nil, eventType, name)
}

func (t facts) find(log []event, eventType, name string) string {
	for _, e := range log {
		if e.Type != eventType {
			continue
		}
		if v, ok := e.Payload[name].(string); ok {
			return v
		}
		if list, ok := e.Payload[name].([]any); ok {
			var parts []string
			for _, v := range list {
				parts = append(parts, fmt.Sprint(v))
			}
			return strings.Join(parts, ", ")
		}
		if v, ok := e.Payload[name]; ok {
			return fmt.Sprint(v)
		}
		break
	}
	*t.missing = append(*t.missing, eventType+"."+name)
	return ""
}
