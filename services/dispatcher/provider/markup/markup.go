// Package markup reads calls of tools that a model wrote into its text. Servers without a parser for
// their model's template, or with a wrong one, leave the calls there.
//
// The notations are those of the templates of open models: JSON with a name and arguments (Hermes, Qwen,
// Llama, Granite, Command), a name before JSON (Mistral, DeepSeek, Kimi, gpt-oss, Llama, ReAct), tags for
// each parameter (Qwen Coder, GLM, MiniMax, DeepSeek), and calls of functions (Llama 4, Gemma).
package markup

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// Arguments returns the arguments of the last whole call of a tool in a text, as JSON. schema is that of
// the tool; it decides which parameters of tags are texts. ok is false if there is no such call: none
// is read in part, none in what the model thinks, and none inside a JSON document that is no call itself.
func Arguments(text, tool string, schema json.RawMessage) (arguments string, ok bool) {
	text = strings.TrimSpace(withoutThoughts(text))
	r := reader{text: text, tool: tool, budget: budgetFactor*len(text) + budgetFloor, at: -1, types: map[string][]string{}}
	r.root = strictjson.Object(schema)
	r.properties = strictjson.Object(r.root["properties"])
	r.readDocuments()
	r.readNames()
	return r.arguments, r.at >= 0
}

// The work on a hostile text is limited, because each bracket can begin a document. Each byte that is
// parsed is charged.
const (
	budgetFactor = 8
	budgetFloor  = 64 << 10
)

// reader finds the last call.
type reader struct {
	text, tool string
	budget     int
	// root is the tool's schema, properties its members, types what it allows for those that were read.
	root, properties map[string]json.RawMessage
	types            map[string][]string
	// documents are the offsets of the JSON documents in the text, and after them.
	documents [][2]int
	// at is the offset of the last call found; -1 for none.
	at        int
	arguments string
}

// found keeps a call if it is later than the others.
func (r *reader) found(at int, arguments string) {
	r.budget -= len(arguments)
	if at > r.at && json.Valid([]byte(arguments)) {
		r.at, r.arguments = at, arguments
	}
}

// Marks around what a model thinks.
var (
	thoughtEnd   = regexp.MustCompile(`(?i)</[a-z_:]*(?:think|thought|reasoning)[a-z_:]*>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>`)
	thoughtBegin = regexp.MustCompile(`(?i)<[a-z_:]*(?:think|thought|reasoning)[a-z_:]*>|\[THINK\]|◁think▷|<\|START_THINKING\|>`)
)

// withoutThoughts returns the text after the last thought. A thought without an end has all the rest.
func withoutThoughts(text string) string {
	if ends := thoughtEnd.FindAllStringIndex(text, -1); ends != nil {
		text = text[ends[len(ends)-1][1]:]
	}
	if begins := thoughtBegin.FindStringIndex(text); begins != nil {
		text = text[:begins[0]]
	}
	return text
}

// IsCallOf reports whether a call's name is that of a tool. Models write it in other letters, with the
// namespace of their prompt's before it, or with a mark of their template or the number of the call after it.
func IsCallOf(name, tool string) bool {
	name, _, _ = strings.Cut(name, "<|")
	name = strings.TrimSpace(name)
	for _, space := range []string{"functions.", "default_api.", "tools."} {
		name = strings.TrimPrefix(name, space)
	}
	if before, number, numbered := strings.Cut(name, ":"); numbered && strings.Trim(number, "0123456789") == "" {
		name = before
	}
	return strings.EqualFold(name, tool)
}

// OrEmptyCall returns the answer of a model that called its tool without arguments: its text, if that can have
// the answer, else an empty object.
func OrEmptyCall(text string) string {
	if strings.ContainsAny(text, "{[") {
		return text
	}
	return "{}"
}

// readDocuments reads calls that are JSON, anywhere in the text. A document that is no call is not
// searched: what it contains is its data.
func (r *reader) readDocuments() {
	for at := 0; at < len(r.text) && r.budget > 0; at++ {
		next := strings.IndexAny(r.text[at:], "{[")
		if next < 0 {
			return
		}
		at += next
		doc, size := r.document(at)
		if doc == nil {
			continue
		}
		r.documents = append(r.documents, [2]int{at, at + size})
		if arguments, ok := r.argumentsIn(doc); ok {
			r.found(at, arguments)
		}
		at += size - 1
	}
}

// document reads the JSON document at an offset; nil if there is none.
func (r *reader) document(at int) (doc json.RawMessage, size int) {
	const attempt = 64 // the work of the shortest one
	r.budget -= attempt
	dec := json.NewDecoder(strings.NewReader(r.text[at:]))
	err := dec.Decode(&doc)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		r.budget -= int(wrong.Offset)
	} else if err != nil {
		r.budget -= len(r.text) - at
	}
	if err != nil {
		return nil, 0
	}
	size = int(dec.InputOffset())
	r.budget -= size
	return doc, size
}

// envelopes are the members of a message that have its calls.
var envelopes = []string{"tool_calls", "tool_uses", "tool_call", "function_calls", "function_call"} //nolint:gochecknoglobals // a constant

// argumentsIn returns the arguments of the last call of the tool in a document: a call, a list of calls, or a
// message with calls.
func (r *reader) argumentsIn(doc json.RawMessage) (arguments string, ok bool) {
	if doc[0] == '[' {
		return r.argumentsOfList(doc)
	}
	r.budget -= len(doc)
	var m map[string]json.RawMessage
	if json.Unmarshal(doc, &m) != nil {
		return "", false
	}
	if c, ok := r.callOf(m); ok {
		return c.argumentsFor(r)
	}
	for _, member := range envelopes {
		inner := m[member]
		if _, answers := r.properties[member]; answers || len(inner) == 0 {
			continue
		}
		switch inner[0] {
		case '[':
			return r.argumentsOfList(inner)
		case '{':
			return r.argumentsOfList(append(append(json.RawMessage("["), inner...), ']'))
		}
	}
	return "", false
}

// argumentsOfList returns the arguments of the last call of the tool in a list. A list with anything else
// than calls is none.
func (r *reader) argumentsOfList(list json.RawMessage) (arguments string, ok bool) {
	r.budget -= len(list)
	dec := json.NewDecoder(bytes.NewReader(list))
	if _, err := dec.Token(); err != nil {
		return "", false
	}
	for dec.More() {
		var m map[string]json.RawMessage
		if dec.Decode(&m) != nil {
			return "", false
		}
		c, is := r.callOf(m)
		if !is {
			return "", false
		}
		if given, whole := c.argumentsFor(r); whole {
			arguments, ok = given, true
		}
	}
	return arguments, ok
}

// call is a call of any tool.
type call struct {
	name      string
	arguments json.RawMessage
}

// callOf returns the call that an object is, or that is its member "function".
func (r *reader) callOf(m map[string]json.RawMessage) (call, bool) {
	if inner := m["function"]; len(inner) > 0 && inner[0] == '{' {
		r.budget -= len(inner)
		m = nil
		_ = json.Unmarshal(inner, &m) // a part of a document is JSON
	}
	for _, member := range []string{"name", "tool_name", "tool", "function", "recipient_name", "action"} {
		var name string
		if json.Unmarshal(m[member], &name) != nil {
			continue
		}
		for _, member := range []string{"arguments", "parameters", "args", "input", "action_input", "tool_input", "kwargs"} {
			if raw, given := m[member]; given {
				return call{name, raw}, true
			}
		}
	}
	return call{}, false
}

// argumentsFor returns the arguments if the call is of the tool, also those that are JSON text in a string.
func (c call) argumentsFor(r *reader) (string, bool) {
	if !IsCallOf(c.name, r.tool) {
		return "", false
	}
	r.budget -= len(c.arguments)
	var text string
	if json.Unmarshal(c.arguments, &text) == nil {
		if string(c.arguments) == "null" || strings.TrimSpace(text) == "" {
			return "{}", true
		}
		return text, json.Valid([]byte(text))
	}
	return string(c.arguments), true
}

// Marks before the name of a tool, and what can be between the name and its arguments.
var (
	mark = regexp.MustCompile(`(?i)(?:\[TOOL_CALLS\]|<[^<>{}\n]*function(?:=|\s+name=)["']?|<[^<>{}\n]*invoke\s+name=["']|` +
		`<tool_call>|tool▁(?:sep|call▁begin)[|｜]>|tool_call_begin\|>|<\|python_tag\|>|<\|recipient\|>|\bto=|(?:^|\n)\s*Action:|>>>)\s*(?:functions\.)?$`)
	glue = regexp.MustCompile(`(?i)^(?:["']?\s*>|\[(?:ARGS|/?CALL_ID)\]|\s*commentary\b|\s+code\b|\s+json\b|<[|｜][^<>{}\n]{1,40}[|｜]>(?:json\b)?|` +
		"```(?:json)?|" + `\s*Action Input:|\.call\(|\(|:\d+|\s)*`)
	callID = regexp.MustCompile(`^\[CALL_ID\][^\[\]{}\s]*`)
)

// maxMark limits the marks around a name, in bytes.
const maxMark = 80

// lastBytes returns the last bytes of a text.
func lastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return "…" + text[len(text)-n:] // not the beginning of the text
}

// readNames reads calls that begin with the name of the tool: after a mark and before a JSON object or tags for
// each parameter, or in the notation of a program.
func (r *reader) readNames() {
	documents := r.documents
	var calls [][2]int // the offsets of the name, and after it
	for at := 0; r.budget > 0; {
		next := strings.Index(r.text[at:], r.tool)
		if next < 0 {
			break
		}
		begins := at + next
		at = begins + len(r.tool)
		const look = 4 * maxMark // the work of matching the marks
		r.budget -= look
		for len(documents) > 0 && documents[0][1] <= begins {
			documents = documents[1:]
		}
		inDocument := len(documents) > 0 && documents[0][0] < begins
		if inDocument || at < len(r.text) && isNameByte(r.text[at]) {
			continue
		}
		if mark.MatchString(lastBytes(r.text[:begins], maxMark)) {
			calls = append(calls, [2]int{begins, at})
		}
		r.readFunction(begins)
	}
	for i, call := range calls {
		end := len(r.text)
		if i+1 < len(calls) {
			end = calls[i+1][0]
		}
		r.readArguments(call[0], r.text[call[1]:end])
	}
}

// readArguments reads what is between the name of a call and the next call.
func (r *reader) readArguments(at int, after string) {
	if arguments, ok := r.readTags(after); ok {
		r.found(at, arguments)
		return
	}
	end := at + len(r.tool) + len(after)
	after = after[len(callID.FindString(after)):]
	after = after[len(glue.FindString(after)):]
	if strings.HasPrefix(after, "{") && r.budget > 0 {
		if doc, _ := r.document(end - len(after)); doc != nil {
			r.found(at, string(doc))
		}
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
