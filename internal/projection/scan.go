package projection

import (
	"bytes"
	"encoding/json"
)

// scanner scans a valid document.
type scanner struct {
	src []byte
	i   int
}

func (s *scanner) space() {
	for s.i < len(s.src) {
		switch s.src[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// kind returns the type of the value that starts here.
func (s *scanner) kind() kinds {
	switch s.src[s.i] {
	case '{':
		return objects
	case '[':
		return arrays
	case '"':
		return strs
	case 'n':
		return nulls
	case 't', 'f':
		return booleans
	}
	return numbers
}

// next advances to the next member or item; false after the closing bracket.
func (s *scanner) next(closing byte) bool {
	s.space()
	if s.src[s.i] == ',' {
		s.i++
		s.space()
	}
	if s.src[s.i] == closing {
		s.i++
		return false
	}
	return true
}

// name skips the name of a member and the colon.
func (s *scanner) name() []byte {
	name := unquote(s.literal())
	s.space()
	s.i++ // the colon
	s.space()
	return name
}

// literal skips a string and returns it as written.
func (s *scanner) literal() []byte {
	from := s.i
	for s.i++; ; {
		s.i += bytes.IndexByte(s.src[s.i:], '"') + 1
		if !s.escaped() {
			return s.src[from:s.i]
		}
	}
}

// escaped reports whether the quote just passed is escaped.
func (s *scanner) escaped() bool {
	slashes := 0
	for at := s.i - 2; s.src[at] == '\\'; at-- {
		slashes++
	}
	return slashes%2 == 1
}

// unquote returns the text of a string; a slice of it if nothing is escaped.
func unquote(literal []byte) []byte {
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1]
	}
	var text string
	_ = json.Unmarshal(literal, &text) // known to be valid
	return []byte(text)
}

// skip skips a value.
func (s *scanner) skip() {
	for depth := 0; ; {
		switch s.src[s.i] {
		case '"':
			s.literal()
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			depth--
			s.i++
		case ',', ':', ' ', '\t', '\r', '\n':
			s.i++
			continue
		default:
			s.plain()
		}
		if depth == 0 {
			return
		}
	}
}

// plain skips a number or a literal.
func (s *scanner) plain() {
	for s.i < len(s.src) {
		switch s.src[s.i] {
		case ',', ':', '}', ']', ' ', '\t', '\r', '\n':
			return
		}
		s.i++
	}
}
