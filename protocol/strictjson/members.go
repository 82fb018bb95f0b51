package strictjson

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// fewMembers is the number of names compared one by one. Beyond it a set is used, because the cost
// would grow with the square of their number.
const fewMembers = 16

// span is the inside of a string literal, without its quotes.
type span struct {
	start, end int
	escaped    bool // holds a backslash, so its bytes are not its text
}

func (p span) raw(b []byte) []byte { return b[p.start:p.end] }

// decode returns the text of a checked literal.
func (p span) decode(b []byte) string {
	raw := p.raw(b)
	if !p.escaped {
		return string(raw)
	}
	text := &strings.Builder{}
	text.Grow(len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			text.Write(raw)
			return fitted(text)
		}
		text.Write(raw[:i])
		raw = raw[i:]
		if raw[1] != 'u' {
			text.WriteByte(escaped[raw[1]])
			raw = raw[2:]
			continue
		}
		r, _ := hex4(raw)
		raw = raw[6:]
		if utf16.IsSurrogate(r) {
			low, _ := hex4(raw)
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError { // else a lone surrogate, accepted by a loose scanner
				raw = raw[6:]
			}
		}
		text.WriteRune(r)
	}
}

// fitted returns a text without excess memory: escapes are up to six times as long as their value.
func fitted(text *strings.Builder) string {
	if text.Cap() > text.Len()+text.Len()/4 {
		return strings.Clone(text.String())
	}
	return text.String()
}

// escaped maps the character after a backslash to its value.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// equal compares the texts of two literals.
func (p span) equal(q span, b []byte) bool {
	if !p.escaped && !q.escaped {
		return bytes.Equal(p.raw(b), q.raw(b))
	}
	return p.decode(b) == q.decode(b)
}

// members tracks the names of one open object. Its array is on the stack, so ordinary objects do
// not allocate.
type members struct {
	few [fewMembers]span
	n   int
	set map[string]struct{} // used once few is full
}

// add records name and reports whether it is new in its object.
func (m *members) add(name span, b []byte) bool {
	if m.set == nil && m.n < fewMembers {
		for _, old := range m.few[:m.n] {
			if old.equal(name, b) {
				return false
			}
		}
		m.few[m.n] = name
		m.n++
		return true
	}
	if m.set == nil {
		m.set = make(map[string]struct{}, 4*fewMembers)
		for _, old := range m.few {
			m.set[old.decode(b)] = struct{}{}
		}
	}
	before := len(m.set)
	m.set[name.decode(b)] = struct{}{}
	return len(m.set) > before
}
