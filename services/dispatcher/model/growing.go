package model

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// closed are the forms of a document that is still being written, closed where it may be.
type closed struct {
	// complete ends after the last complete value.
	complete json.RawMessage
	// open also has the string that is still open; longer is open with a further character in that
	// string. Both are nil if no string value is open.
	open, longer json.RawMessage
}

// maxGrowingDepth limits the nesting of a document that is closed.
const maxGrowingDepth = 128

// furtherRune is a letter that no schema can expect: it is of the private use area.
const furtherRune = "\uE000"

// closeDocument closes the object or array at the start of a text. ok is false if it is not the
// beginning of valid JSON, or nothing of it is complete.
func closeDocument(text string) (out closed, ok bool) {
	c := closer{text: text}
	if !c.run() {
		return closed{}, false
	}
	out.complete = []byte(text[:c.safe] + closing(c.safeStack))
	if !json.Valid(out.complete) {
		return closed{}, false
	}
	if c.value > 0 {
		head := text[:c.value] + wholeRunes(text[c.value:])
		tail := `"` + closing(c.stack)
		out.open, out.longer = []byte(head+tail), []byte(head+furtherRune+tail)
		if !json.Valid(out.open) {
			out.open, out.longer = nil, nil
		}
	}
	return out, true
}

// closer finds where a document can be closed.
type closer struct {
	text  string
	stack []byte
	// safe is the offset after the last complete value, safeStack the brackets that are open there.
	safe      int
	safeStack []byte
	// value is the offset within a string value that does not end; 0 if there is none.
	value int
}

// What may follow in a document.
const (
	nextValue = 1 << iota
	nextName
	nextColon
	nextComma
	nextClose
)

// run returns false if the text is not the beginning of a document.
func (c *closer) run() bool {
	next := nextValue
	for i := 0; i < len(c.text); i++ {
		b, needs := c.text[i], nextValue
		end := i + 1
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case ':':
			needs = nextColon
		case ',':
			needs = nextComma
		case '}', ']':
			needs = nextClose
			if c.inside() != b-2 {
				return false
			}
		case '"':
			needs = next & (nextValue | nextName)
			end = stringEnd(c.text, i)
		case '{', '[':
			if len(c.stack) == maxGrowingDepth {
				return false
			}
		default:
			rest := strings.TrimLeft(c.text[i:], "-+.0123456789abcdefghijklmnopqrstuvwxyzE")
			if end = len(c.text) - len(rest); end == i {
				return false
			}
		}
		switch {
		case next&needs == 0:
			return false
		case end == 0: // the string is open
			if needs == nextValue {
				c.value = i + 1
			}
			return c.safe > 0
		case end == len(c.text) && strings.IndexByte(`{}[]":,`, b) < 0: // a number or literal can continue
			return c.safe > 0
		}
		if next = c.after(b, needs, end); next == 0 {
			return true
		}
		i = end - 1
	}
	return c.safe > 0
}

// after applies a token that ends at an offset, and returns what may follow; 0 at the end of the document.
func (c *closer) after(token byte, as, end int) (next int) {
	switch token {
	case '{':
		c.stack = append(c.stack, token)
		next = nextName | nextClose
	case '[':
		c.stack = append(c.stack, token)
		next = nextValue | nextClose
	case '}', ']':
		c.stack = c.stack[:len(c.stack)-1]
		next = nextComma | nextClose
	case ':':
		return nextValue
	case ',':
		if c.inside() == '{' {
			return nextName
		}
		return nextValue
	default:
		if as == nextName {
			return nextColon
		}
		next = nextComma | nextClose
	}
	c.safe, c.safeStack = end, append(c.safeStack[:0], c.stack...)
	if len(c.stack) == 0 {
		return 0
	}
	return next
}

// inside returns the innermost open bracket; 0 if there is none.
func (c *closer) inside() byte {
	if len(c.stack) == 0 {
		return 0
	}
	return c.stack[len(c.stack)-1]
}

// stringEnd returns the offset after the string that begins at an offset; 0 if it does not end.
func stringEnd(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// closing returns the brackets that close others.
func closing(stack []byte) string {
	out := make([]byte, 0, len(stack))
	for i := len(stack) - 1; i >= 0; i-- {
		out = append(out, stack[i]+2) // { and }, [ and ] are two apart
	}
	return string(out)
}

// wholeRunes returns the content of an open string without an incomplete character or escape at its end.
func wholeRunes(text string) string {
	for i := 0; i < len(text); {
		var n int
		switch {
		case text[i] != '\\':
			r, size := utf8.DecodeRuneInString(text[i:])
			if n = size; r == utf8.RuneError && !utf8.FullRuneInString(text[i:]) {
				return text[:i]
			}
		case strings.HasPrefix(text[i:], `\u`):
			n = 6
			if isHighSurrogate(text[i:]) {
				n = 12
			}
		default:
			n = 2
		}
		if i+n > len(text) {
			return text[:i]
		}
		i += n
	}
	return text
}

// isHighSurrogate reports whether an escape is the first half of a character.
func isHighSurrogate(escape string) bool {
	return len(escape) >= 4 && (escape[2] == 'd' || escape[2] == 'D') && strings.IndexByte("89abAB", escape[3]) >= 0
}
