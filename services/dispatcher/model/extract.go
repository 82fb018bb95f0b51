package model

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// document is one JSON document found in a model's answer.
type document struct {
	raw json.RawMessage
	// path is how it was found (envelope.recovery.applied).
	path string
	// offset is the byte offset of its start in the answer, end that of the text after it.
	offset, end int
	// alone means that it is the whole text, a whole fenced block, or begins its line. Other documents
	// are amid a line of prose.
	alone bool
	// echo means that the prompt contains the document.
	echo bool
	// begins is the offset of its fenced block, else of itself.
	begins int
	// labelled means that a label with a colon introduces it.
	labelled bool
	// quoted means that it is in a quotation.
	quoted bool
	// tool is the name of the tool that a model calls with the document; empty for none.
	tool string
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
	// announced means that the text ends with the label of an answer.
	announced bool
	// repeats means that documents were left out because they only repeat the prompt.
	repeats bool
	// rejected means that the text says of its documents that they are not the answer, doubted that it takes
	// its last one back.
	rejected, doubted bool
	// calls are the calls of tools in the text, interim means that it ends with one of another tool.
	calls   []writtenCall
	interim bool
	// end is where the model's turn ends.
	end int
}

// isText reports whether the answer has neither JSON nor thinking alone.
func (x extraction) isText() bool {
	return len(x.documents) == 0 && x.broken < 0 && !x.thought && !x.announced && !x.repeats && !x.rejected && !x.doubted && !x.interim
}

// extract finds the JSON documents of an answer, leniently and deterministically: the whole text, else
// the outermost objects and arrays and the fenced values, without the model's thinking (OpenWOP
// envelope contract §14.6).
func extract(text string) extraction {
	trimmed := strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	if trimmed != "" && json.Valid([]byte(trimmed)) {
		at := strings.Index(text, trimmed)
		return extraction{broken: -1, end: len(text), documents: []document{{
			raw: json.RawMessage(trimmed), path: pathDirect, offset: at, begins: at, end: len(text), alone: true,
		}}}
	}
	s := searcher{text: text, budget: searchBudget(len(text)), found: extraction{broken: -1}}
	s.run()
	switch {
	case s.endsBeforeAnswer():
		s.drop()
		s.found.announced = true
	case s.isDoubted():
		s.drop()
		s.found.doubted = true
	}
	s.found.end = len(s.text)
	return s.found
}

// endsBeforeAnswer reports whether the text ends where an answer was to follow: after a label, a heading or a
// tag, or after the beginning of a block of JSON. The documents before it are drafts.
func (s *searcher) endsBeforeAnswer() bool {
	end := 0
	if n := len(s.found.documents); n > 0 {
		end = s.found.documents[n-1].end
	} else if s.found.rejected {
		end = s.last
	}
	rest := strings.TrimRight(s.text[end:], " \t\r\n*_")
	if end == 0 || rest == "" {
		return false
	}
	rest = rest[max(0, len(rest)-maxLine):]
	if tag := answerTag.FindString(rest); tag != "" {
		return !strings.Contains(s.text[:end], tag) // <answer>…<answer> has lost a slash
	}
	return answerBegin.MatchString(rest)
}

// answerTag matches a tag of an answer at the end of a text.
var answerTag = regexp.MustCompile(`(?i)<(?:final[ _]?)?(?:answer|output|response|result|json)>$`)

// answerBegin matches a label, a heading or the beginning of a block of JSON at the end of a text.
var answerBegin = regexp.MustCompile("(?i)(?:[:：][ \t*_]*(?:\\s*```)?|```json[a-z0-9]*|(?:^|\n)#{2,6} [^\n{]*)$")

// searcher walks through the text of an answer.
type searcher struct {
	text string
	pos  int
	// budget limits the bytes of attempts to read a document, because each opening bracket of a hostile
	// answer can start an attempt over all that follows.
	budget int
	// fenced means that the position is within a fenced block.
	fenced bool
	// final means that the model's channel for the answer has begun.
	final bool
	found extraction
	marks markReader
	call  openCall
	// begins is the offset after the last mark of thinking, last that after the last document, also of one that
	// does not count. scanned is up to where the text was searched for the turn of another.
	begins, last, scanned int
	// thoughts are the blocks of thinking after which text follows.
	thoughts [][2]int
}

// searchBudget returns the budget for a text of a size. An answer that is prose with many brackets has to be
// read; megabytes of them are hostile.
func searchBudget(size int) int {
	const least, usual, factor, beyond = 1 << 20, 1 << 20, 8, 2
	return least + factor*min(size, usual) + beyond*max(0, size-usual)
}

// attempt is the work of the shortest attempt, with a look at what is around it.
const attempt = 64

const (
	fence = "```"
	// cdata begins text in XML, after <!.
	cdata = "[CDATA["
	// comment begins a comment of XML, commentEnd ends it.
	comment, commentEnd = "<!--", "-->"
	// boxed precedes the braces around an answer in LaTeX.
	boxed = `\boxed`
	// escape precedes the bracket of a sequence that colours a terminal.
	escape = "\x1b"
)

// run visits the places at which the meaning of the text changes, in order.
func (s *searcher) run() {
	s.marks = markReader{text: s.text, budget: &s.budget}
	s.passStrippedMarks()
	for s.pos < len(s.text) {
		at := strings.IndexAny(s.text[s.pos:], "{[`<◁&")
		if at < 0 {
			return
		}
		if s.budget <= 0 { // the answer may follow
			s.drop()
			return
		}
		s.pos += at
		rest := s.text[s.pos:]
		if (len(s.found.documents) > 0 || s.found.broken >= 0) && endsTurn(rest) {
			s.endTurn()
			return
		}
		if (rest[0] == '<' || rest[0] == '[') && s.passCall(rest) {
			continue
		}
		if hasPrefixFold(rest, channelMark) {
			s.passChannel()
			continue
		}
		if m, ok := s.marks.mark(s.pos); ok {
			s.passThinking(m)
			continue
		}
		switch {
		case strings.HasPrefix(rest, fence) && s.fenced:
			s.pos, s.fenced = s.pos+len(fence), false
		case (rest[0] == '{' || rest[0] == '[' || strings.HasPrefix(rest, fence)) && s.passesTurn():
			s.endTurn()
			return
		case strings.HasPrefix(rest, fence):
			s.openFence()
		case strings.HasPrefix(rest, cdata):
			s.pos += len(cdata)
		case strings.HasPrefix(rest, comment):
			s.passComment()
		case rest[0] == '{' && strings.HasSuffix(s.text[:s.pos], boxed), rest[0] == '[' && (strings.HasSuffix(s.text[:s.pos], escape) || strings.HasSuffix(s.text[:s.pos], `\`)):
			s.pos++
		case rest[0] == '{' || rest[0] == '[':
			s.readDocument(pathBraces, false)
		default:
			s.pos++
		}
	}
}

// passComment skips a comment, which is no answer.
func (s *searcher) passComment() {
	s.pos += len(comment)
	end := strings.Index(s.text[s.pos:], commentEnd)
	s.budget -= len(s.text) - s.pos
	if end >= 0 {
		s.pos += end + len(commentEnd)
	}
}

// drop forgets what was found: it belongs to the model's thinking, or is before a broken document.
func (s *searcher) drop() { s.found = extraction{broken: -1} }

func (s *searcher) add(d document) {
	if d.begins == 0 {
		d.begins = d.offset
	}
	rejected := s.isRejected(d)
	if !rejected {
		_, d.labelled = s.announcement(d.begins)
		d.tool, d.quoted = s.toolOf(d), isQuoted(s.lineBefore(d.begins))
	}
	s.last = d.end
	if rejected {
		s.found.rejected = true
		return
	}
	s.found.documents = append(s.found.documents, d)
	s.found.broken, s.found.thought = -1, false
}

// openFence reads the value of a fenced block. A block that is not one value is searched like other
// text, but code is passed over: its brackets are no documents.
func (s *searcher) openFence() {
	begins := s.pos
	s.pos += len(fence)
	body := s.text[s.pos:]
	info := infoString(body)
	language := strings.ToLower(body[:info])
	s.pos += info
	body = body[info:]
	size, closed := strings.Index(body, fence), len(fence)
	if size < 0 {
		size, closed = len(body), 0
	}
	content := strings.TrimSpace(body[:size])
	s.budget -= size
	if m := toolCode.FindStringSubmatch(content); m != nil && strings.HasPrefix(language, "tool") {
		s.noteCall(m[1], begins)
	}
	if isThinking(language) {
		s.pos += size + closed
		s.found.thought = s.found.thought || len(s.found.documents) == 0
		return
	}
	if content != "" && json.Valid([]byte(content)) {
		offset := s.pos + strings.Index(body, content)
		s.pos += size + closed
		s.add(document{
			raw: json.RawMessage(content), path: pathFence, offset: offset, begins: begins, end: s.pos,
			alone: strings.Contains(body[:size], "\n") || s.fillsLines(begins, s.pos),
		})
		return
	}
	lead := len(body) - len(strings.TrimLeft(body, " \t\r\n"))
	bracket := lead < len(body) && (body[lead] == '{' || body[lead] == '[')
	if isCode(language) && (!bracket || !s.isLikeJSON(body[lead:])) {
		s.pos += size + closed
		return
	}
	s.fenced = true
	if bracket {
		s.pos += lead
		s.readDocument(pathFence, strings.HasPrefix(language, "json"))
	}
}

// isLikeJSON reports whether a block of code begins like an object or a list.
func (s *searcher) isLikeJSON(code string) bool {
	r := inspect(code, &s.budget)
	return r.named || r.loose
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

// isCode reports whether a block of a language holds program text, so that only a whole value is an
// answer in it.
func isCode(language string) bool {
	switch language {
	case "", "text", "txt", "plain", "plaintext", "markdown", "md", "output", "result", "answer", "response":
		return false
	}
	return !strings.HasPrefix(language, "json") && !strings.HasSuffix(language, "json")
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// readDocument reads the object or array at the position. If it is almost JSON, neither what it
// contains nor what precedes it is the answer. A bracket of prose is passed over. asked means that a
// fence says that it is JSON.
func (s *searcher) readDocument(path string, asked bool) {
	rest := s.text[s.pos:]
	s.budget -= attempt
	dec := json.NewDecoder(strings.NewReader(rest))
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if err != nil && s.readQuoted() {
		return
	}
	if err == nil {
		s.budget -= len(raw)
		end := s.pos + len(raw)
		d := document{raw: raw, path: path, offset: s.pos, end: end, alone: s.standsAlone(s.pos, end)}
		if s.isPart(d) {
			s.drop()
			s.found.broken = s.pos
			s.passBroken(region{})
			return
		}
		if !s.isRemark(d) {
			s.add(d)
		}
		s.pos = end
		return
	}
	s.budget--
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		s.budget -= int(wrong.Offset)
	}
	r := inspect(rest, &s.budget)
	switch {
	case s.isDocument(r, asked, errors.Is(err, io.ErrUnexpectedEOF)):
		s.drop()
		s.found.broken = s.pos
		s.passBroken(r)
	case r.end > 0 && (r.loose && !r.spread || s.isCodeSpan(s.pos, s.pos+r.end)) && !s.marks.hasMark(s.pos, s.pos+r.end):
		s.pos += r.end // nothing in it is a document of its own
	default:
		s.pos++
	}
}

// readQuoted reads JSON text in a JSON string whose quote precedes the position.
func (s *searcher) readQuoted() bool {
	if s.pos == 0 || s.text[s.pos-1] != '"' || !strings.HasPrefix(strings.TrimLeft(s.text[s.pos:], "{["), `\`) {
		return false
	}
	var inner string
	dec := json.NewDecoder(strings.NewReader(s.text[s.pos-1:]))
	if err := dec.Decode(&inner); err != nil || !json.Valid([]byte(inner)) {
		s.budget -= len(inner)
		if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
			s.budget -= int(wrong.Offset)
		} else if err != nil { // the text ends within the string, which was to be the answer
			s.budget -= len(s.text) - s.pos
			s.drop()
			s.found.broken, s.pos = s.pos, len(s.text)
			return true
		}
		return false
	}
	size := int(dec.InputOffset())
	s.budget -= size
	begins, end := s.pos-1, s.pos-1+size
	s.add(document{raw: json.RawMessage(inner), path: pathText, offset: begins, end: end, alone: s.standsAlone(begins, end)})
	s.pos = end
	return true
}

// passBroken goes on after a broken document: after its last bracket if that is certain, else at the
// next mark of thinking or fence.
func (s *searcher) passBroken(r region) {
	next := s.marks.next(s.pos, len(s.text)) - s.pos
	s.budget -= next
	if r.end > 0 && r.end <= next && s.endsCertainly(r.end) {
		s.pos += r.end
		return
	}
	s.pos += next
	s.fenced = false
}

// endsCertainly reports whether a broken document ends at an offset. Its strings may be what is broken, so
// its brackets are counted with and without regard to strings, nothing may follow in the line, and
// what follows must not close more brackets than it opens.
func (s *searcher) endsCertainly(end int) bool {
	rest := s.text[s.pos:]
	s.budget -= len(rest)
	line, _, _ := strings.Cut(rest[end:], "\n")
	if strings.TrimSpace(line) != "" {
		return false
	}
	depth := 0
	for i := range len(rest) {
		switch rest[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth < 0 || depth == 0 && i < end-1 {
			return false
		}
		if i == end-1 && depth != 0 {
			return false
		}
	}
	return true
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
