// Package markup reads calls of tools that a model wrote into its text. Servers without a parser for
// their model's template, or with a wrong one, leave the calls there.
//
// The notations are those of the templates of open models: JSON with a name and arguments (Hermes, Qwen,
// Llama, Granite, Command), a name before JSON (Mistral, DeepSeek, Kimi, gpt-oss, Llama, ReAct), tags for
// each parameter (Qwen Coder, GLM, MiniMax, DeepSeek), and calls of functions (Llama 4, Gemma).
package markup

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// Arguments returns the arguments of the last whole call of a tool in a text, as JSON. schema is that of
// the tool; it decides which parameters of tags are texts. ok is false if there is no such call: none
// is read in part, and none in what the model thinks.
func Arguments(text, tool string, schema json.RawMessage) (arguments string, ok bool) {
	text = strings.TrimSpace(withoutThoughts(text))
	r := reader{text: text, tool: tool, budget: budgetFactor*len(text) + budgetFloor, at: -1}
	r.readObjects()
	r.readNames(schema)
	return r.arguments, r.at >= 0
}

// The work on a hostile text is limited, because each bracket can begin a document.
const (
	budgetFactor = 8
	budgetFloor  = 64 << 10
)

// reader finds the last call.
type reader struct {
	text, tool string
	budget     int
	// at is the offset of the last call found; -1 for none.
	at        int
	arguments string
}

// found keeps a call if it is later than the others.
func (r *reader) found(at int, arguments string) {
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

// isTool reports whether a name is that of the tool: also with a namespace before it, or the number of
// the call after it.
func (r *reader) isTool(name string) bool {
	name = strings.TrimPrefix(strings.TrimSpace(name), "functions.")
	if before, number, numbered := strings.Cut(name, ":"); numbered && strings.Trim(number, "0123456789") == "" {
		name = before
	}
	return name == r.tool
}

// readObjects reads calls that are JSON objects, anywhere in the text.
func (r *reader) readObjects() {
	for at := 0; at < len(r.text) && r.budget > 0; at++ {
		next := strings.IndexByte(r.text[at:], '{')
		if next < 0 {
			return
		}
		at += next
		doc, size := r.document(at)
		if arguments, ok := r.argumentsOf(doc); ok {
			r.found(at, arguments)
			at += size - 1
		}
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

// argumentsOf returns the arguments of an object that is a call of the tool.
func (r *reader) argumentsOf(doc json.RawMessage) (string, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(doc, &m) != nil {
		return "", false
	}
	if inner := m["function"]; len(inner) > 0 && inner[0] == '{' {
		return r.argumentsOf(inner)
	}
	for _, name := range []string{"name", "tool_name", "tool", "function", "recipient_name", "action"} {
		var called string
		if json.Unmarshal(m[name], &called) != nil || !r.isTool(called) {
			continue
		}
		for _, member := range []string{"arguments", "parameters", "args", "input", "action_input", "tool_input", "kwargs"} {
			if raw, given := m[member]; given {
				return object(raw)
			}
		}
	}
	return "", false
}

// object returns a document, also one that is JSON text in a string.
func object(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if string(raw) == "null" || strings.TrimSpace(text) == "" {
			return "{}", true
		}
		return text, json.Valid([]byte(text))
	}
	return string(raw), true
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
func (r *reader) readNames(schema json.RawMessage) {
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
		if at < len(r.text) && isNameByte(r.text[at]) {
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
		r.readArguments(call[0], r.text[call[1]:end], schema)
	}
}

// readArguments reads what is between the name of a call and the next call.
func (r *reader) readArguments(at int, after string, schema json.RawMessage) {
	if arguments, ok := readTags(after, schema); ok {
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
