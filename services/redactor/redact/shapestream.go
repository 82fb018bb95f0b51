package redact

import (
	"strings"
	"unicode"
)

// Bounds of what the second layer holds back of a stream, in bytes.
const (
	// maxWord is longer than any word of a rule: without one in sight, this much
	// of the end may still become one.
	maxWord = 24
	// maxLine is how long a line with a word of a rule may be held.
	maxLine = 1024
	// maxBlock is how long a key block may be held.
	maxBlock = 16 << 10
)

const (
	blockBegin = "-----BEGIN "
	blockKind  = "PRIVATE KEY"
	blockEnd   = blockKind + "-----"
	// escapedLine ends a line of a text that is within a JSON text.
	escapedLine = `\n`
)

// shapeStream is the second layer over a text that arrives in pieces. A line
// without a word of any rule passes but for its last token; one with a word waits
// for its end, and a key block for its last line. What grows beyond the bounds
// while it matches a rule is dropped to its end.
type shapeStream struct {
	shapes *Shapes
	held   string
	// dropping: the end of a secret that was too long to hold.
	dropping bool
}

// write takes a piece and gives what may be shown.
func (s *shapeStream) write(piece string) (out string, count int) {
	if s.shapes == nil {
		return piece, 0
	}
	s.held += piece
	s.drop()
	cut := s.cut()
	out, count = s.shapes.Replace(s.held[:cut])
	s.held = s.held[cut:]
	if len(s.held) > s.limit() {
		rest, n := s.overflow()
		out, count = out+rest, count+n
	}
	return out, count
}

// close gives the rest.
func (s *shapeStream) close() (out string, count int) {
	if s.shapes == nil || s.dropping {
		s.held = ""
		return "", 0
	}
	out, count = s.shapes.Replace(s.held)
	s.held = ""
	return out, count
}

// limit is how much may be held now.
func (s *shapeStream) limit() int {
	if strings.HasPrefix(s.held, blockBegin) {
		return maxBlock
	}
	return maxLine
}

// cut is how much of the held text is settled.
func (s *shapeStream) cut() int {
	cut := s.lineCut()
	if begin, end, ok := block(s.held); ok && cut > begin && cut < end {
		return begin
	}
	return cut
}

// block finds the last key block of a text: where it begins and ends. A block
// without an end reaches beyond the text.
func block(text string) (begin, end int, ok bool) {
	begin = strings.LastIndex(text, blockBegin)
	if begin < 0 {
		return 0, 0, false
	}
	label, rest, closed := strings.Cut(text[begin+len(blockBegin):], "-----")
	if closed && !strings.HasSuffix(label, blockKind) {
		return 0, 0, false // a certificate, say
	}
	at := strings.Index(rest, blockEnd)
	if !closed || at < 0 {
		return begin, len(text) + 1, true
	}
	return begin, len(text) - len(rest) + at + len(blockEnd), true
}

// lineCut is how much is settled as far as lines go.
func (s *shapeStream) lineCut() int {
	line := max(strings.LastIndexByte(s.held, '\n')+1, strings.LastIndex(s.held, escapedLine)+len(escapedLine))
	if line == len(escapedLine)-1 { // neither
		line = 0
	}
	if s.shapes.any(s.held[line:]) {
		return line
	}
	token := strings.LastIndexFunc(s.held, unicode.IsSpace) + 1
	if len(s.held)-token > maxWord { // no word in it: all but what may become one
		token = wholeRunes([]byte(s.held), len(s.held)-maxWord)
	}
	return max(line, token)
}

// overflow settles a text that is too long to be held. If a secret may reach
// beyond its end, the rest of that is dropped when it comes.
func (s *shapeStream) overflow() (out string, count int) {
	out, count = s.shapes.Replace(s.held)
	switch {
	case strings.HasPrefix(s.held, blockBegin) && strings.Contains(s.held, blockEnd) && count == 0:
		out, count, s.dropping = marker("shape.private-key"), 1, true
	case strings.HasSuffix(out, "]") && count > 0:
		s.dropping = true
	}
	s.held = ""
	return out, count
}

// drop skips the end of a secret that was too long to hold.
func (s *shapeStream) drop() {
	if !s.dropping {
		return
	}
	at := strings.IndexFunc(s.held, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;<>`, r) })
	if at < 0 {
		s.held = ""
		return
	}
	s.held, s.dropping = s.held[at:], false
}

// size of the held text, for those who must bound it.
func (s *shapeStream) size() int { return len(s.held) }
