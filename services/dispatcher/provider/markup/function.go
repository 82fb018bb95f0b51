package markup

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// Limits of arguments in the notation of a program: the library's time grows with the square of depth
// and size, because each repair copies what is repaired so far.
const (
	maxProgramBytes = 16 << 10
	maxProgramDepth = 64
)

// callMark matches what precedes a call in the notation of a program: nothing, a list of calls, or a mark. A
// function in prose or in a program is none.
var callMark = regexp.MustCompile(`(?:^|\|>|<tool_call>|(?:^|\n|\|>|>)\[|\),|tool_code\n)\s*(?:print\()?(?:default_api\.|functions\.)?$`)

// readFunction reads a call at an offset: NAME(key="value"), also NAME.call(…) and call:NAME{key:value}.
func (r *reader) readFunction(at int) {
	before := lastBytes(r.text[:at], maxMark)
	rest := strings.TrimPrefix(r.text[at+len(r.tool):], ".call")
	if strings.HasPrefix(rest, "(") && callMark.MatchString(before) ||
		strings.HasPrefix(rest, "{") && strings.HasSuffix(before, "call:") {
		r.readProgram(at, rest[:min(len(rest), maxProgramBytes)])
	}
}

// readProgram reads the arguments in brackets at the start of the text.
func (r *reader) readProgram(at int, text string) {
	for _, quote := range []string{`<|"|>`, "<escape>"} { // of Gemma
		text = strings.ReplaceAll(text, quote, `"`)
	}
	size, named := enclosed(text)
	r.budget -= len(text)
	if size == 0 {
		return
	}
	const repairing = 16 // times the work of reading
	r.budget -= repairing * size
	inner := strings.TrimSpace(string(named[1 : len(named)-1]))
	switch {
	case inner == "":
		inner = "{}"
	case inner[0] != '{':
		inner = "{" + inner + "}"
	}
	if repaired, err := jsonrepair.Repair(inner); err == nil {
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(repaired), &m) == nil {
			r.found(at, repaired)
		}
	}
}

// enclosed returns the size of the brackets at the start of a text, and the text with colons after the
// names of arguments; 0 if the brackets have no end or are too large.
func enclosed(text string) (size int, named []byte) {
	depth := 0
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		named = append(named, c)
		switch {
		case quote != 0 && c == '\\' && i+1 < len(text):
			i++
			named = append(named, text[i])
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			if depth++; depth > maxProgramDepth {
				return 0, nil
			}
		case c == ')' || c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1, named
			}
		case c == '=' && depth == 1:
			named[len(named)-1] = ':'
		}
	}
	return 0, nil
}
