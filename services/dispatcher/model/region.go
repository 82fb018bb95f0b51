package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// A bracket that begins no valid JSON begins a broken document, or a remark: a placeholder, code, a
// formula, a link. A broken document was to be the answer, so that nothing before it is. A remark
// means nothing. The criteria are in docs/answers.md.

// region is what an opening bracket begins.
type region struct {
	// end is the offset after the bracket that closes it; 0 if none does.
	end int
	// named means that it has a member with a quoted name, as a JSON object or a list of them has.
	named bool
	// loose means that it begins like an object in a notation close to JSON, spread that nothing follows
	// the bracket in its line, and no quote in the next.
	loose, spread bool
	// elided means that dots replace a part of it, blank that nothing else is in it.
	elided, blank bool
}

// maxRegion limits how far a bracket is followed, in bytes.
const maxRegion = 64 << 10

// inspect reads the region at the start of the text, and pays for it.
func inspect(text string, budget *int) region {
	text = text[:min(len(text), maxRegion)]
	w := regionWalk{text: text, region: region{loose: beginsLoosely(text), spread: isSpread(text)}, leading: true}
	w.run()
	*budget -= w.i
	return w.region
}

// regionWalk is the state of inspect.
type regionWalk struct {
	region

	text string
	i    int
	// stack has the open brackets. The first level of them open the region: {, [{ or [[{.
	stack []byte
	level int
	// leading means that only brackets were read, member that the name of a member can follow.
	leading, member bool
	filled          bool
}

func (w *regionWalk) run() {
	for ; w.i < len(w.text); w.i++ {
		switch c := w.text[w.i]; c {
		case ' ', '\t', '\r', '\n':
			w.leading = w.leading && (c != '\n' || w.stack[len(w.stack)-1] == '[')
			continue
		case '{', '[':
			w.open(c)
			continue
		case '}', ']':
			if w.stack = w.stack[:len(w.stack)-1]; len(w.stack) == 0 {
				w.end = w.i + 1
				w.blank = !w.filled
				return
			}
		case '"':
			if !w.quoted(c) {
				return
			}
		case '\'':
			w.filled = true
			if w.member && len(w.stack) == w.level && !w.quoted(c) {
				return
			}
		case '\\':
			if w.i+1 < len(w.text) && strings.IndexByte("nrt", w.text[w.i+1]) >= 0 { // space that is escaped
				w.i++
				continue
			}
			w.filled = true
		case '.':
			w.elided = w.elided || strings.HasPrefix(w.text[w.i:], "...")
		default:
			if strings.HasPrefix(w.text[w.i:], "…") {
				w.elided = true
				w.i += len("…") - 1
			} else {
				w.filled = true
			}
		}
		w.leading, w.member = false, w.text[w.i] == ','
	}
}

func (w *regionWalk) open(c byte) {
	w.stack = append(w.stack, c)
	if w.leading {
		w.level++
	}
	w.member = true
}

// quoted passes a string. It returns false if the string does not end.
func (w *regionWalk) quoted(quote byte) bool {
	name := w.member && len(w.stack) == w.level
	w.filled = true
	for at := w.i + 1; at < len(w.text); at++ {
		switch w.text[at] {
		case '\\':
			at++
		case quote:
			w.i = at
			after := strings.TrimLeft(w.text[at+1:], " \t\r\n")
			w.named = w.named || name && (after == "" || after[0] == ':')
			return true
		}
	}
	w.i = len(w.text)
	w.named = w.named || name
	return false
}

// beginsLoosely reports whether a bracket opens an object or a list in a notation close to JSON.
func beginsLoosely(text string) bool {
	inner := strings.TrimLeft(text[1:], " \t\r\n\u00a0")
	switch {
	case inner == "":
		return false
	case text[0] == '[':
		return inner[0] == '"' || inner[0] == '\'' || inner[0] == '{' && beginsLoosely(inner)
	case inner[0] == '"' || inner[0] == '\'':
		return true
	}
	for _, slip := range []string{"//", "/*", "#", ",", "...", "…", "“", "”", "‘", "’", "«", `\"`} {
		if strings.HasPrefix(inner, slip) {
			return true
		}
	}
	name := 0
	for name < len(inner) && (isWordByte(inner[name]) || inner[name] == '-' || inner[name] == '$') {
		name++
	}
	return name > 0 && strings.HasPrefix(strings.TrimLeft(inner[name:], " "), ":")
}

// isSpread reports whether a line ends after the bracket, and the next one does not begin like JSON.
func isSpread(text string) bool {
	line, next, more := strings.Cut(text[1:], "\n")
	next = strings.TrimLeft(next, " \t\r\n")
	return more && strings.TrimSpace(line) == "" && next != "" && strings.IndexByte(`"'{[`, next[0]) < 0
}

// isDocument reports whether the region at the position is a broken document. asked means that a fence
// says that it is JSON, cut that all the rest of the text is the beginning of valid JSON.
func (s *searcher) isDocument(r region, asked, cut bool) bool {
	begins := s.beginsLine(s.pos)
	switch {
	case r.end > 0 && (r.blank || formatSketch.MatchString(s.text[s.pos:s.pos+r.end])): // {...}, {"title": string}
		return false
	case asked:
		return true
	case r.end == 0 && strings.TrimSpace(s.text[s.pos+1:]) == "":
		return begins || s.followsDocument()
	case r.named:
		return begins || r.end == 0 || !r.elided && !s.isCodeSpan(s.pos, s.pos+r.end)
	case r.spread && !begins:
		return false
	case r.loose:
		return begins || r.end == 0 || strings.Contains(s.text[s.pos:s.pos+r.end], `":`)
	case r.end > 0 && scalarList.MatchString(s.text[s.pos:s.pos+r.end]):
		return s.fillsLines(s.pos, s.pos+r.end)
	}
	return cut
}

// followsDocument reports whether a document ends at the position.
func (s *searcher) followsDocument() bool {
	n := len(s.found.documents)
	return n > 0 && s.found.documents[n-1].end == s.pos
}

// formatSketch matches an object or a list of them whose values are placeholders or names of types: it has no
// data, so it was not to be the answer.
var formatSketch = regexp.MustCompile(`^[\[{](?:[\s\[\]{},:|?]|"(?:[^"\\]|\\.)*"\s*:|"(?:\.\.\.|…|<[^<>"]*>)"|\.\.\.|…|<[^<>"]*>|` +
	`\b(?:string|str|text|number|integer|int|float|boolean|bool|date|object|array|any|null)\b)*[\]}]$`)

// scalarList matches a list of numbers and literals, with or without commas.
var scalarList = regexp.MustCompile(`^\[(?:[\s,]|[-+0-9.eE]+|true|false|null)*\]$`)

// isPart reports whether a valid document is a part of a broken one: the value of a member, an item of a
// list, or a document that ends too early, with more members after it.
func (s *searcher) isPart(d document) bool {
	before := strings.TrimRight(s.text[max(0, d.offset-maxLine):d.offset], " \t\r\n")
	if name, ok := strings.CutSuffix(before, ":"); ok && strings.HasSuffix(strings.TrimRight(name, " \t"), `"`) {
		return true
	}
	after := strings.TrimLeft(s.text[d.end:min(len(s.text), d.end+maxLine)], " \t\r\n")
	return after != "" && (after[0] == ',' || after[0] == '"') && furtherMember.MatchString(after) ||
		strings.HasSuffix(before, ",") && after != "" && strings.IndexByte(",]}", after[0]) >= 0
}

// furtherMember matches a member of an object.
var furtherMember = regexp.MustCompile(`^,?\s*"(?:[^"\\\n]|\\.){0,64}"\s*:`)

// isRemark reports whether a valid document belongs to the prose around it: an index, a link, a
// citation, or an empty value; or whether it is commented out.
func (s *searcher) isRemark(d document) bool {
	if s.isCommented(d.offset) {
		return true
	}
	if isNumbers(d.raw) && !isEmpty(d.raw) && s.isSource(d.offset) {
		return true
	}
	if s.fillsLines(d.offset, d.end) {
		return false
	}
	if d.raw[0] == '[' {
		if d.offset > 0 && strings.IndexByte(")]}", s.text[d.offset-1]) >= 0 || s.wordBefore(d.offset) {
			return true
		}
		if d.end < len(s.text) && (s.text[d.end] == '(' || s.text[d.end] == '[') {
			return true
		}
	}
	return isEmpty(d.raw) || isNumbers(d.raw)
}

// isCommented reports whether the mark of a comment precedes a place in its line: also after a document in
// this line.
func (s *searcher) isCommented(at int) bool {
	line := strings.TrimSpace(s.lineBefore(at))
	if line == "#" || lineComment.MatchString(line) {
		return true
	}
	return s.last > 0 && s.last <= at && !strings.Contains(s.text[s.last:at], "\n") && commentMark.MatchString(line)
}

var (
	// lineComment matches a line with the mark of a comment, which no URL has.
	lineComment = regexp.MustCompile(`(?:^|[^:/])//|/\*[^*]*$`)
	// commentMark matches the mark of a comment at the start.
	commentMark = regexp.MustCompile(`^[,;]?\s*(?:#|--|//|/\*)`)
)

// isEmpty reports whether a document is an empty object or array.
func isEmpty(raw json.RawMessage) bool {
	inner := strings.Trim(string(raw), " \t\r\n")
	return len(inner) >= 2 && (inner[0] == '{' || inner[0] == '[') && strings.Trim(inner[1:len(inner)-1], " \t\r\n") == ""
}

// isNumbers reports whether a document is a list of numbers alone.
func isNumbers(raw json.RawMessage) bool {
	return len(raw) > 0 && raw[0] == '[' && strings.Trim(string(raw), "[]0123456789+-.eE, \t\r\n") == ""
}

func (s *searcher) wordBefore(at int) bool { return at > 0 && isWordByte(s.text[at-1]) }

// isCodeSpan reports whether a span is a part of code: an argument, a literal with its type, an inline
// code span, a statement.
func (s *searcher) isCodeSpan(from, to int) bool {
	if from > 0 && strings.IndexByte("()]}$\\%&@", s.text[from-1]) >= 0 || s.wordBefore(from) {
		return true
	}
	if to >= len(s.text) {
		return false
	}
	return s.text[to] == ';' || s.text[to] == '`' && from > 0 && s.text[from-1] == '`'
}

// maxLine limits how much of a line is looked at, in bytes.
const maxLine = 512

// standsAlone reports whether a span is alone in its lines, or before prose without brackets: an answer
// can have a remark after it.
func (s *searcher) standsAlone(from, to int) bool {
	return s.beginsLine(from) && (s.endsLine(to) || !strings.ContainsAny(s.lineAfter(to), "{["))
}

// fillsLines reports whether a span is alone in its lines, apart from marks, and a label before it.
func (s *searcher) fillsLines(from, to int) bool { return s.endsLine(to) && s.beginsLine(from) }

// endsLine reports whether only marks follow a place in its line.
func (s *searcher) endsLine(at int) bool { return onlyMarks(s.lineAfter(at)) }

func (s *searcher) lineAfter(at int) string {
	line, _, _ := strings.Cut(s.text[at:min(len(s.text), at+maxLine)], "\n")
	return line
}

// beginsLine reports whether only marks, or a label with a colon, precede a place in its line.
func (s *searcher) beginsLine(at int) bool {
	before := s.text[max(0, at-maxLine):at]
	before = withoutMarks(before[strings.LastIndexByte(before, '\n')+1:])
	if before == "" {
		return true
	}
	for _, label := range []string{":", "：", "=>", "→", "->"} {
		if strings.HasSuffix(before, label) {
			return true
		}
	}
	return false
}

const (
	// marksBefore are the marks of quotes, lists and emphasis before a document, marksAfter those after it.
	marksBefore = ">*+`\"' \t\r~-\uFEFF"
	marksAfter  = "*`\"' \t\r.,;~)]}"
	// maxTag limits a tag or special token.
	maxTag = 80
)

// withoutMarks returns the part of a line before the marks at its end: also tags, special tokens, and
// the number of a list's item.
func withoutMarks(line string) string {
	for {
		line = strings.TrimRight(line, marksBefore[1:]) // > can be that of a label
		switch {
		case strings.HasSuffix(line, "->"), strings.HasSuffix(line, "=>"):
			return line
		case strings.HasSuffix(line, ">"):
			at := strings.LastIndexByte(line, '<')
			if at < 0 || len(line)-at > maxTag {
				line = strings.TrimSuffix(line, ">")
				continue
			}
			line = line[:at]
		case strings.HasSuffix(line, "]"):
			at := strings.LastIndexByte(line, '[')
			if at < 0 || strings.Trim(line[at+1:len(line)-1], "/ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
				return line
			}
			line = line[:at]
		default:
			if number := strings.TrimRight(line, ".)"); number != line && strings.Trim(number, " 0123456789") == "" {
				return ""
			}
			return line
		}
	}
}

// onlyMarks reports whether a line has marks alone, such as a closing tag.
func onlyMarks(line string) bool {
	for {
		line = strings.TrimLeft(line, marksAfter)
		var end int
		switch {
		case line == "":
			return true
		case line[0] == '<':
			end = strings.IndexByte(line, '>')
		case line[0] == '[':
			if end = strings.IndexByte(line, ']'); end > 0 && strings.Trim(line[1:end], "/ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
				return false
			}
		default:
			return false
		}
		if end < 0 || end > maxTag {
			return false
		}
		line = line[end+1:]
	}
}
