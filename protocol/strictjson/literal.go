package strictjson

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes that need no escape in a string literal.
var plain = func() (of [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		of[c] = c != '"' && c != '\\'
	}
	return of
}()

// text reads a string literal and returns the span between its quotes.
func (s *scanner) text() (span, *Error) {
	s.i++
	p := span{start: s.i}
	for s.i < len(s.b) {
		for s.i < len(s.b) && plain[s.b[s.i]] {
			s.i++
		}
		if s.i == len(s.b) {
			break
		}
		switch c := s.b[s.i]; {
		case c == '"':
			p.end = s.i
			s.i++
			return p, nil
		case c == '\\':
			p.escaped = true
			if err := s.escape(); err != nil {
				return p, err
			}
		case c < ' ':
			return p, s.fail(RuleSyntax, "a control character in a string; write it as an escape such as \\n or \\u0000")
		default:
			r, size := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && size == 1 {
				return p, s.fail(RuleEncoding, "a byte that is not UTF-8; send the document as UTF-8")
			}
			s.i += size
		}
	}
	return p, s.want("a closing double quote")
}

// escape reads one escape; a surrogate pair counts as one.
func (s *scanner) escape() *Error {
	if s.i+1 >= len(s.b) {
		s.i = len(s.b)
		return s.want("the rest of an escape")
	}
	if s.b[s.i+1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, s.b[s.i+1]) < 0 {
			return s.fail(RuleSyntax, `an unknown escape; JSON has \" \\ \/ \b \f \n \r \t and \u with four hex digits`)
		}
		s.i += 2
		return nil
	}
	r, ok := hex4(s.b[s.i:])
	if !ok {
		return s.fail(RuleSyntax, `\u needs four hex digits`)
	}
	if !utf16.IsSurrogate(r) {
		s.i += 6
		return nil
	}
	low, ok := hex4(s.b[s.i+6:])
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		if s.loose {
			s.i += 6
			return nil
		}
		return s.fail(RuleEncoding, "lone surrogate; escape both halves, high one first, or write the character itself")
	}
	s.i += 12
	return nil
}

// hex4 reads a \uXXXX escape at the front of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// word reads true, false or null.
func (s *scanner) word(w string) *Error {
	for k := range len(w) {
		if s.peek() != w[k] {
			return s.want("the word " + w)
		}
		s.i++
	}
	return nil
}

// number reads a number by the grammar of RFC 8259 §6, of any size; callers limit its value.
func (s *scanner) number() *Error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++ // no leading zeros: another digit is not part of the number
	} else if !s.digits() {
		return s.want("a digit")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.want("a digit after the decimal point")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.want("a digit in the exponent")
		}
	}
	return nil
}

// digits skips digits and reports whether there was one.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}
