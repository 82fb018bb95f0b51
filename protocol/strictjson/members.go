package strictjson

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// fewMembers is how many names are compared one by one; beyond it a set takes
// over, or an object of many members would cost the square of their number.
const fewMembers = 16

// span is the inside of a string literal, without its quotes.
type span struct {
	start, end int
	escaped    bool // holds a backslash, so its bytes are not its text
}

func (p span) raw(b []byte) []byte { return b[p.start:p.end] }

// decode gives the text of the literal, which has been checked before.
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
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError { // else half of a pair, which a loose reader takes
				raw = raw[6:]
			}
		}
		text.WriteRune(r)
	}
}

// fitted is a text that keeps no more memory than about what it needs: escapes are up to six times as
// long as what they stand for.
func fitted(text *strings.Builder) string {
	if text.Cap() > text.Len()+text.Len()/4 {
		return strings.Clone(text.String())
	}
	return text.String()
}

// escaped is what stands behind a backslash, and what it stands for.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// equal compares the texts of two literals.
func (p span) equal(q span, b []byte) bool {
	if !p.escaped && !q.escaped {
		return bytes.Equal(p.raw(b), q.raw(b))
	}
	return p.decode(b) == q.decode(b)
}

// members knows the names of one open object. Its fixed array lives on the
// stack of the walk: an ordinary object costs no allocation.
type members struct {
	few [fewMembers]span
	n   int
	set map[string]struct{} // takes over once few is full
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
