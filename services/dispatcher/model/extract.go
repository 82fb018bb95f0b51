package model

import (
	"encoding/json"
	"errors"
	"strings"
)

// document is one JSON document found in a model's answer.
type document struct {
	raw json.RawMessage
	// path is how it was found (envelope.recovery.applied).
	path string
	// offset is the byte offset of its start in the answer.
	offset int
}

// Values of document.path.
const (
	pathDirect = "direct"
	pathFence  = "markdown-fence"
	pathBraces = "brace-walker"
	pathRepair = "jsonrepair"
	// pathText is JSON text within a JSON string.
	pathText = "custom"
)

// extraction is what an answer contains.
type extraction struct {
	// documents are in the order of the answer.
	documents []document
	// broken is the offset of the last document that is almost JSON; -1 if there is none. The documents
	// before it are drafts, or repeat the input: the broken one was to be the answer.
	broken int
	// thought means that nothing follows the model's thinking.
	thought bool
}

// isText reports whether the answer has neither JSON nor thinking alone.
func (x extraction) isText() bool { return len(x.documents) == 0 && x.broken < 0 && !x.thought }

// extract finds the JSON documents of an answer, leniently and deterministically: the whole text, else
// the outermost objects and arrays and the fenced values, without the model's thinking (OpenWOP
// envelope contract §14.6).
func extract(text string) extraction {
	trimmed := strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	if trimmed != "" && json.Valid([]byte(trimmed)) {
		return extraction{
			documents: []document{{raw: json.RawMessage(trimmed), path: pathDirect, offset: strings.Index(text, trimmed)}},
			broken:    -1,
		}
	}
	s := searcher{text: text, budget: scanFactor*len(text) + scanFloor, found: extraction{broken: -1}}
	s.run()
	return s.found
}

// searcher walks through the text of an answer.
type searcher struct {
	text string
	pos  int
	// budget limits the bytes of attempts to read a document, because each opening bracket of a hostile
	// answer can start an attempt over all that follows.
	budget int
	// fenced means that the position is within a fenced block.
	fenced bool
	found  extraction
}

const (
	scanFactor = 32
	scanFloor  = 64 << 10
)

const fence = "```"

// run visits the places at which the meaning of the text changes, in order.
func (s *searcher) run() {
	for s.pos < len(s.text) {
		at := strings.IndexAny(s.text[s.pos:], "{[`<◁")
		if at < 0 {
			return
		}
		if s.budget <= 0 { // the answer may follow
			s.drop()
			return
		}
		s.pos += at
		rest := s.text[s.pos:]
		if m, ok := thinkingMark(rest); ok {
			s.passThinking(m)
			continue
		}
		switch {
		case strings.HasPrefix(rest, fence) && s.fenced:
			s.pos, s.fenced = s.pos+len(fence), false
		case strings.HasPrefix(rest, fence):
			s.openFence()
		case rest[0] == '{' || rest[0] == '[':
			s.readDocument(pathBraces)
		default:
			s.pos++
		}
	}
}

// drop forgets what was found: it belongs to the model's thinking, or is before a broken document.
func (s *searcher) drop() { s.found = extraction{broken: -1} }

// passThinking skips a block of thinking. Everything before a mark that ends thinking, although none
// has begun, is thinking, too: the beginning was part of the prompt.
func (s *searcher) passThinking(m mark) {
	s.pos += len(m.text)
	if m.ends == "" {
		s.drop()
		s.found.thought = true
		return
	}
	s.found.thought = true
	end := strings.Index(s.text[s.pos:], m.ends)
	if end < 0 { // the model never came to its answer
		s.pos = len(s.text)
		return
	}
	s.pos += end + len(m.ends)
}

// openFence reads the value of a fenced block. A block that is not one value is searched like other text.
func (s *searcher) openFence() {
	s.pos += len(fence)
	body := s.text[s.pos:]
	if info := infoString(body); info > 0 {
		s.pos += info
		body = body[info:]
	}
	end := strings.Index(body, fence)
	if end < 0 {
		end = len(body)
	}
	content := strings.TrimSpace(body[:end])
	s.budget -= end
	if content != "" && json.Valid([]byte(content)) {
		offset := s.pos + strings.Index(body, content)
		s.add(document{raw: json.RawMessage(content), path: pathFence, offset: offset})
		s.pos = min(s.pos+end+len(fence), len(s.text))
		return
	}
	s.fenced = true
	if lead := len(body) - len(strings.TrimLeft(body, " \t\r\n")); lead < len(body) && (body[lead] == '{' || body[lead] == '[') {
		s.pos += lead
		s.readDocument(pathFence)
	}
}

// infoString returns the length of the language name after a fence. Without space after it, it is content.
func infoString(body string) int {
	n := 0
	for n < len(body) && (isWordByte(body[n]) || strings.IndexByte("+-.#", body[n]) >= 0) {
		n++
	}
	if n < len(body) && strings.IndexByte(" \t\r\n", body[n]) < 0 {
		return 0
	}
	return n
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (s *searcher) add(d document) {
	s.found.documents = append(s.found.documents, d)
	s.found.broken, s.found.thought = -1, false
}

// readDocument reads the object or array at the position. If it is almost JSON, neither what it
// contains nor what precedes it is the answer, and the search goes on at the next place that begins
// anew. A bracket of prose is passed over.
func (s *searcher) readDocument(path string) {
	rest := s.text[s.pos:]
	dec := json.NewDecoder(strings.NewReader(rest))
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if err == nil {
		s.budget -= len(raw)
		s.add(document{raw: raw, path: path, offset: s.pos})
		s.pos += int(dec.InputOffset())
		return
	}
	wrong, _ := errors.AsType[*json.SyntaxError](err)
	if strings.TrimSpace(rest[1:]) == "" || wrong != nil && !beginsLikeJSON(rest) {
		s.budget--
		if wrong != nil {
			s.budget -= int(wrong.Offset)
		}
		s.pos++
		return
	}
	s.drop()
	s.found.broken = s.pos
	s.pos += nextBeginning(rest)
	s.fenced = false
}

// beginsLikeJSON reports whether a bracket opens a document rather than a remark.
func beginsLikeJSON(text string) bool {
	inner := strings.TrimLeft(text[1:], " \t\r\n")
	switch {
	case len(inner) == 0:
		return false
	case text[0] == '[':
		return strings.IndexByte(`{["'`, inner[0]) >= 0
	case inner[0] == '"' || inner[0] == '\'' || inner[0] == '{':
		return true
	}
	for _, slip := range []string{"//", "/*", "#", ",", "...", "…", "“", "”", "‘", "’", "«"} {
		if strings.HasPrefix(inner, slip) {
			return true
		}
	}
	name := 0
	for name < len(inner) && (isWordByte(inner[name]) || inner[name] == '-' || inner[name] == '$') {
		name++
	}
	if name > 0 && strings.HasPrefix(strings.TrimLeft(inner[name:], " "), ":") {
		return true
	}
	end := closingBracket(text[:min(len(text), maxRemark)])
	return end > 0 && strings.Contains(text[:end], `":`)
}

// maxRemark limits how far a bracket is followed to see what it contains, in bytes.
const maxRemark = 1024

// closingBracket returns the index after the bracket that closes the one at the start, outside strings;
// 0 if there is none.
func closingBracket(text string) int {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// nextBeginning returns the offset of the next mark of thinking or fence at the start of a line, after
// a broken document.
func nextBeginning(text string) int {
	for i := 1; i < len(text); i++ {
		if text[i] == '`' && text[i-1] == '\n' && strings.HasPrefix(text[i:], fence) {
			return skipClosingFence(text, i)
		}
		if text[i] == '<' || text[i] == '[' || strings.HasPrefix(text[i:], "◁") {
			if _, ok := thinkingMark(text[i:]); ok {
				return i
			}
		}
	}
	return len(text)
}

// skipClosingFence returns the offset after a fence without a language, which closes the block of the
// broken document; otherwise the offset of the fence itself.
func skipClosingFence(text string, at int) int {
	after := text[at+len(fence):]
	if line, _, _ := strings.Cut(after, "\n"); strings.TrimSpace(line) == "" {
		return at + len(fence)
	}
	return at
}

// mark is a mark around a model's thinking.
type mark struct {
	text string
	// ends is the mark that ends the thinking that text begins; empty if text ends it.
	ends string
}

// thinkingMarks are the marks of open models, as their chat templates define them.
//
//nolint:gochecknoglobals // a constant
var thinkingMarks = []mark{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"<seed:think>", "</seed:think>"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
	{"<|channel|>analysis", "<|channel|>final"},
	{"<|channel|>commentary", "<|channel|>final"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<scratchpad>", "</scratchpad>"},
	{"<thought_process>", "</thought_process>"},
	{"[THINK]", "[/THINK]"},
	{"◁think▷", "◁/think▷"},
}

// thinkingMark returns the mark at the start of the text, in any case.
func thinkingMark(text string) (mark, bool) {
	for _, m := range thinkingMarks {
		if hasPrefixFold(text, m.text) {
			return mark{text[:len(m.text)], foldedEnd(text, m.ends)}, true
		}
		if hasPrefixFold(text, m.ends) {
			return mark{text: text[:len(m.ends)]}, true
		}
	}
	return mark{}, false
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// foldedEnd returns the ending mark as the text writes it.
func foldedEnd(text, end string) string {
	for i := range len(text) - len(end) + 1 {
		if (text[i] == end[0]) && strings.EqualFold(text[i:i+len(end)], end) {
			return text[i : i+len(end)]
		}
	}
	return end
}

// isProse reports whether a text is no JSON document and does not start like one or a fence (OpenWOP
// envelope contract §14.7).
func isProse(text string) bool {
	t := strings.TrimSpace(text)
	if json.Valid([]byte(t)) {
		return false
	}
	if len(t) > 16 {
		t = t[:16]
	}
	return t != "" && !strings.HasPrefix(t, "{") && !strings.HasPrefix(t, "[") && !strings.HasPrefix(t, fence)
}
