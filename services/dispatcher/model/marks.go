package model

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mark is a mark around a model's thinking.
type mark struct {
	text string
	// ends is the mark that ends the thinking that text begins; empty if text ends it.
	ends string
	// paired means that ends alone has another meaning.
	paired bool
	// quoted means that text alone has another meaning.
	quoted bool
}

// thinkingMarks are the marks of open models, as their chat templates define them. Tags are recognised by
// their names; see isThinking.
//
//nolint:gochecknoglobals // a constant
var thinkingMarks = []mark{
	{text: `<details type="reasoning">`, ends: "</details>", paired: true},
	{text: "<|begin_of_thought|>", ends: "<|end_of_thought|>"},
	{text: "<|START_THINKING|>", ends: "<|END_THINKING|>"},
	{text: "<|think|>", ends: "<|/think|>"},
	{text: "<|thinking|>", ends: "<|/thinking|>"},
	{text: "<|inner_prefix|>", ends: "<|inner_suffix|>"},
	{text: "<|channel>thought", ends: "<channel|>"},
	{text: "<unused94>", ends: "<unused95>"},
	{text: "[THINK]", ends: "[/THINK]"},
	{text: "◁think▷", ends: "◁/think▷"},
	{text: "[unused16]", ends: "[unused17]"},
	// The turns of others, which a model invents.
	{text: "<|im_start|>user", ends: "<|im_end|>", paired: true},
	{text: "<|start_header_id|>user<|end_header_id|>", ends: "<|eot_id|>", paired: true},
	{text: "<|start_header_id|>ipython<|end_header_id|>", ends: "<|eot_id|>", paired: true},
	{text: "[INST]", ends: "[/INST]", paired: true, quoted: true},
	{text: "[TOOL_RESULTS]", ends: "[/TOOL_RESULTS]", paired: true, quoted: true},
}

// markReader finds marks of thinking in a text.
type markReader struct {
	text string
	// budget is charged for the bytes that are searched for ends; nil charges nothing.
	budget *int
	// lastEnds has the offsets of the last tokens that end thinking, by their brackets and names, lastHeading
	// that of the last heading of an answer; see index. They are nil and 0 until then.
	lastEnds    map[string]int
	lastHeading int
}

func (r *markReader) spend(bytes int) {
	if r.budget != nil {
		*r.budget -= bytes
	}
}

// mark returns the mark at an offset, in any case, and with attributes.
func (r *markReader) mark(at int) (mark, bool) {
	m, ok := r.readMark(at)
	if ok && m.ends != "" { // the search for its end
		size := strings.Index(r.text[at+len(m.text):], m.ends)
		if size < 0 {
			size = len(r.text) - at
		}
		r.spend(size)
	}
	return m, ok
}

func (r *markReader) readMark(at int) (mark, bool) {
	text := r.text[at:]
	for _, m := range thinkingMarks {
		if n := openingSize(text, m.text); n > 0 {
			if m.quoted && !strings.Contains(text, m.ends) { // a text about the mark
				r.spend(len(text))
				continue
			}
			return mark{text: text[:n], ends: foldedEnd(text, m.ends), paired: m.paired}, true
		}
		if !m.paired && hasPrefixFold(text, m.ends) {
			return mark{text: text[:len(m.ends)]}, true
		}
	}
	if m, ok := r.tokenMark(at); ok {
		return m, true
	}
	t, ok := readTag(text)
	switch {
	case ok && t.name == "details" && !t.closing:
		m := summary.FindStringSubmatch(text[t.size:min(len(text), t.size+maxTag)])
		if m == nil || !isThinking(m[1]) {
			return mark{}, false
		}
		return mark{text: text[:t.size], ends: "</details>", paired: true}, true
	case !ok || !isThinking(t.name) && !r.isDraft(t, at):
		return mark{}, false
	case t.closing:
		return mark{text: text[:t.size]}, true
	default:
		return mark{text: text[:t.size], ends: closingTag(text[t.size:], t.name)}, true
	}
}

// summary matches the summary of a block that a page folds.
var summary = regexp.MustCompile(`(?i)^\s*<summary>[^\pL]*(\pL+)`)

// next returns the offset of the next mark of thinking or fence at the start of a line, after a broken
// document at from. If there is none before to, it returns to.
func (r *markReader) next(from, to int) int {
	text := r.text[:to]
	for i := from + 1; i < to; i++ {
		if text[i] == '`' && text[i-1] == '\n' && strings.HasPrefix(text[i:], fence) {
			return skipClosingFence(text, i)
		}
		if text[i] == '<' || text[i] == '[' || strings.HasPrefix(text[i:], "◁") {
			if _, ok := r.mark(i); ok || hasPrefixFold(text[i:], channelMark) || endsTurn(text[i:]) {
				return i
			}
		}
	}
	return to
}

// hasMark reports whether a span contains a fence or a mark of thinking, so that it is no remark.
func (r *markReader) hasMark(from, to int) bool {
	return strings.Contains(r.text[from:to], fence) || r.next(from, to) < to
}

// tag is an XML tag, also with its brackets escaped.
type tag struct {
	name    string
	closing bool
	size    int
}

// readTag reads the tag at the start of the text.
func readTag(text string) (t tag, ok bool) {
	head := text[:min(len(text), maxTag)]
	rest, ends := strings.TrimPrefix(head, "<"), ">"
	if len(rest) == len(head) {
		if rest = strings.TrimPrefix(head, "&lt;"); len(rest) == len(head) {
			return tag{}, false
		}
		ends = "&gt;"
	}
	rest = strings.TrimLeft(rest, " ")
	if inner, closing := strings.CutPrefix(rest, "/"); closing {
		t.closing, rest = true, strings.TrimLeft(inner, " ")
	}
	size := 0
	for size < len(rest) && (isWordByte(rest[size]) || rest[size] >= utf8.RuneSelf || strings.IndexByte("-:.", rest[size]) >= 0) {
		size++
	}
	t.name, rest = rest[:size], rest[size:]
	end := strings.Index(rest, ends)
	if size == 0 || end < 0 {
		return tag{}, false
	}
	attributes := rest[:end]
	if strings.ContainsAny(attributes, "{[<|") || strings.HasSuffix(attributes, "/") || // <think /> is around nothing
		t.closing && strings.TrimSpace(attributes) != "" ||
		!t.closing && attributes != "" && attributes[0] != ' ' {
		return tag{}, false
	}
	t.size = len(head) - len(rest) + end + len(ends)
	return t, true
}

// isThinking reports whether a tag, or a block of code, is named after thinking: think, antThinking,
// chain_of_thought, seed:think, inner_monologue.
func isThinking(name string) bool {
	const shortest, longest = len("think"), 40
	if len(name) < shortest || len(name) > longest {
		return false
	}
	name = strings.ToLower(name)
	for _, answer := range []string{"answer", "response", "output", "result", "final"} {
		if strings.Contains(name, answer) {
			return false
		}
	}
	for _, word := range []string{"think", "thought", "reasoning", "reflection", "monologue", "scratchpad", "rumination", "rationale", "思考", "思维", "推理"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// closingTag returns the closing tag of a name as the text writes it.
func closingTag(text, name string) string {
	for at := 0; ; at++ {
		next := strings.IndexAny(text[at:], "<&")
		if next < 0 {
			return "</" + name + ">"
		}
		at += next
		if t, ok := readTag(text[at:]); ok && t.closing && strings.EqualFold(t.name, name) {
			return text[at : at+t.size]
		}
	}
}

// openingSize returns the size of an opening mark at the start of the text; 0 if there is none. A tag can
// have attributes.
func openingSize(text, opening string) int {
	if hasPrefixFold(text, opening) {
		return len(opening)
	}
	name := strings.TrimSuffix(opening, ">")
	if name == opening || strings.HasSuffix(name, "|") || !hasPrefixFold(text, name+" ") {
		return 0
	}
	end := strings.IndexByte(text[:min(len(text), maxTag)], '>')
	if end < 0 || strings.ContainsAny(text[:end], "{[\n") {
		return 0
	}
	return end + 1
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

// passThinking skips a block of thinking. Everything before a mark that ends thinking, although none
// has begun, is thinking, too: the beginning was part of the prompt.
func (s *searcher) passThinking(m mark) {
	before := s.text[max(0, s.pos-maxLine):s.pos]
	beginsLine := onlyMarks(before[strings.LastIndexByte(before, '\n')+1:])
	s.pos += len(m.text)
	s.begins, s.last = s.pos, s.pos
	if m.ends == "" {
		s.drop()
		s.found.thought = true
		s.readScalar()
		return
	}
	s.found.thought = true
	end := strings.Index(s.text[s.pos:], m.ends)
	if end < 0 { // the model never came to its answer
		if !m.paired && beginsLine && strings.TrimSpace(s.text[s.pos:]) != "" { // what precedes its second thoughts is a draft
			s.drop()
			s.found.thought = true
		}
		s.pos = len(s.text)
		return
	}
	begins := s.pos - len(m.text)
	s.pos += end + len(m.ends)
	s.begins, s.last = s.pos, s.pos
	s.thoughts = append(s.thoughts, [2]int{begins, s.pos})
	s.readScalar()
}

// readScalar reads the rest of the text after thinking if it is a string, a number or a literal.
func (s *searcher) readScalar() {
	begins := s.pos + len(s.text[s.pos:]) - len(strings.TrimLeft(s.text[s.pos:], " \t\r\n"))
	if begins == len(s.text) || strings.IndexByte(`"-0123456789tfn`, s.text[begins]) < 0 {
		return
	}
	value, _, _ := strings.Cut(s.text[begins:], "<|") // marks of the end
	value = strings.TrimSpace(value)
	if s.budget -= len(s.text) - begins; s.budget <= 0 || !json.Valid([]byte(value)) {
		return
	}
	s.add(document{raw: json.RawMessage(value), path: pathText, offset: begins, end: len(s.text), alone: true})
	s.pos = len(s.text)
}

// The harmony format of gpt-oss has messages in channels: <|channel|>NAME<|message|>TEXT<|end|>. The
// answer is in the channel final, thinking in analysis. In commentary are calls of tools and remarks
// about them, which are the answer only if there is no final channel.
const (
	channelMark = "<|channel|>"
	messageMark = "<|message|>"
	// maxHeader limits the text between the marks: the channel, the tool and the type of its text.
	maxHeader = 256
)

// messageEnds are the marks that end a message.
//
//nolint:gochecknoglobals // a constant
var messageEnds = []string{"<|end|>", "<|start|>", "<|return|>", "<|call|>", channelMark}

// passChannel reads the header of a message, and skips a message that is not the answer.
func (s *searcher) passChannel() {
	header := s.text[s.pos+len(channelMark):]
	name := ""
	for _, known := range []string{"final", "commentary", "analysis"} {
		if hasPrefixFold(strings.TrimLeft(header, " "), known) {
			name = known
		}
	}
	size := headerSize(header, name)
	s.call = openCall{}
	before := s.text[max(0, s.pos-maxHeader):s.pos]
	if to := recipient.FindStringSubmatch(before[max(0, strings.LastIndex(before, "<|")):] + " " + header[:size]); to != nil && name == "commentary" && !s.final {
		s.call = openCall{open: true, tool: to[1], once: true}
		s.noteCall(to[1], s.pos)
	}
	s.pos += len(channelMark) + size
	s.begins, s.last = s.pos, s.pos
	switch {
	case name == "final":
		s.drop()
		s.final = true
		s.readScalar()
	case name == "commentary" && !s.final:
	default:
		if len(s.found.documents) == 0 {
			s.found.thought = true
		}
		s.pos += messageSize(s.text[s.pos:])
	}
}

// headerSize returns the size of a header with its mark. Some servers remove the mark.
func headerSize(header, name string) int {
	part := header[:min(len(header), maxHeader)]
	if at := strings.Index(part, messageMark); at >= 0 && !strings.ContainsAny(part[:at], "{\n") {
		return at + len(messageMark)
	}
	return len(header) - len(strings.TrimLeft(header, " ")) + len(name)
}

// messageSize returns the size of a message up to the mark that ends it.
func messageSize(text string) int {
	for i := 0; i < len(text); i += 2 {
		at := strings.Index(text[i:], "<|")
		if at < 0 {
			break
		}
		i += at
		for _, end := range messageEnds {
			if hasPrefixFold(text[i:], end) {
				return i
			}
		}
	}
	return len(text)
}
