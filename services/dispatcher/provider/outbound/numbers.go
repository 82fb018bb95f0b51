package outbound

import (
	"bufio"
	"bytes"
	"strings"
)

// numbers replaces NaN and the infinities, which servers in Python write into JSON, by a string of the same
// size that PlainText reads as absent. AsSent restores the words in what the model itself wrote. The zero
// numbers is ready. It keeps its state between the pieces of a document.
type numbers struct {
	inString, escaped bool
	// rest is what follows of a replacement that began at the end of a piece.
	rest string
}

// notFinite are the words, with what replaces them.
//
//nolint:gochecknoglobals // a constant
var notFinite = []struct{ word, with string }{
	{"NaN", "\"\x7f\""},
	{"Infinity", "\"\x7f\x7f\"    "},
	{"-Infinity", "\"\x7f\x7f\x7f\"    "},
}

// AsSent returns the document that a server sent, with NaN and the infinities that are not JSON: a value that
// the host made up must not become part of an answer.
func AsSent(doc string) string {
	for _, n := range notFinite {
		doc = strings.ReplaceAll(doc, n.with, n.word)
		doc = strings.ReplaceAll(doc, strings.TrimRight(n.with, " "), n.word) // a reader has removed the spaces
	}
	return doc
}

// hasNotFinite reports whether a document can contain one of the words.
func hasNotFinite(doc []byte) bool {
	return bytes.Contains(doc, []byte("NaN")) || bytes.Contains(doc, []byte("Infinity"))
}

// mend replaces the words in a piece. next has what follows the piece; nil if nothing does.
func (m *numbers) mend(piece []byte, next *bufio.Reader) {
	if next == nil && !hasNotFinite(piece) {
		return
	}
	for i, c := range piece {
		switch {
		case m.rest != "":
			piece[i], m.rest = m.rest[0], m.rest[1:]
		case m.escaped:
			m.escaped = false
		case m.inString:
			m.escaped, m.inString = c == '\\', c != '"'
		case c == '"':
			m.inString = true
		case c == 'N' || c == 'I' || c == '-':
			m.replace(piece, i, next)
		}
	}
}

// replace replaces the word at an offset, if there is one.
func (m *numbers) replace(piece []byte, at int, next *bufio.Reader) {
	for _, n := range notFinite {
		found := piece[at:]
		if missing := len(n.word) - len(found); missing > 0 && next != nil && bytes.HasPrefix([]byte(n.word), found) {
			more, _ := next.Peek(missing) // fewer at the end
			found = append(bytes.Clone(found), more...)
		}
		if bytes.HasPrefix(found, []byte(n.word)) {
			piece[at], m.rest = n.with[0], n.with[1:]
			return
		}
	}
}
