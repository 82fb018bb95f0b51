package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Limits bounds a document. A zero field stands for the one of Default.
type Limits struct {
	// MaxBytes is the maximum size of a document, in bytes.
	MaxBytes int
	// MaxDepth is the maximum nesting of objects and arrays. A plain string or number has depth 0.
	MaxDepth int
}

// Default is the limit for request bodies: 1 MiB, 64 levels.
var Default = Limits{MaxBytes: 1 << 20, MaxDepth: 64}

// withDefaults fills the zero fields of l.
func (l Limits) withDefaults() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = Default.MaxBytes
	}
	if l.MaxDepth == 0 {
		l.MaxDepth = Default.MaxDepth
	}
	return l
}

// Check reports whether b is exactly one JSON value within l: valid syntax and UTF-8, no lone
// surrogate escape, no object with two members of one name (compared after unescaping). The error
// is an *Error. Check reads b once, retains nothing of it, and allocates only for objects of more
// than 16 members.
func Check(b []byte, l Limits) error {
	if err := check(b, l.withDefaults()); err != nil {
		return err
	}
	return nil
}

func check(b []byte, l Limits) *Error { return checked(&scanner{b: b, maxDepth: l.MaxDepth}, l) }

// checked scans the whole document of s.
func checked(s *scanner, l Limits) *Error {
	b := s.b
	if len(b) > l.MaxBytes {
		return &Error{Rule: RuleSize, Reason: fmt.Sprintf("document is %d bytes, limit is %d", len(b), l.MaxBytes)}
	}
	s.space()
	if err := s.value(0); err != nil {
		return err
	}
	s.space()
	if s.i < len(b) {
		return s.fail(RuleSyntax, "data after the end of the value; send exactly one JSON value")
	}
	return nil
}

// scanner scans one document, recursively up to maxDepth.
type scanner struct {
	b        []byte
	i        int
	maxDepth int
	// top receives the members of the outermost object; nil if they are not collected.
	top map[string]json.RawMessage
	// loose accepts repeated names in an object and lone surrogates.
	loose bool
}

func (s *scanner) fail(rule, reason string) *Error {
	return &Error{Offset: s.i, Rule: rule, Reason: reason}
}

// want returns an error that names the expected token.
func (s *scanner) want(what string) *Error {
	if s.i >= len(s.b) {
		return s.fail(RuleSyntax, "the document ends too early; want "+what)
	}
	return s.fail(RuleSyntax, "want "+what+" here")
}

// peek returns the next byte, or 0 at the end; 0 is not valid outside a string.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// value reads one value; depth is the number of containers around it.
func (s *scanner) value(depth int) *Error {
	switch c := s.peek(); c {
	case '{', '[':
		if depth >= s.maxDepth {
			return s.fail(RuleDepth, "nested too deep; limit is "+strconv.Itoa(s.maxDepth)+" levels of objects and arrays")
		}
		if c == '{' {
			return s.object(depth + 1)
		}
		return s.array(depth + 1)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number()
	}
	if bytes.HasPrefix(s.b[s.i:], []byte("\xef\xbb\xbf")) {
		return s.fail(RuleSyntax, "a byte order mark is not JSON; send UTF-8 without it")
	}
	return s.want("a JSON value")
}

func (s *scanner) array(depth int) *Error {
	s.i++
	s.space()
	if s.peek() == ']' {
		s.i++
		return nil
	}
	for n := 0; ; n++ {
		s.space()
		if err := s.value(depth); err != nil {
			return err.under(strconv.Itoa(n))
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			return nil
		default:
			return s.want("a comma or the end of the array")
		}
	}
}

func (s *scanner) object(depth int) *Error {
	s.i++
	s.space()
	if s.peek() == '}' {
		s.i++
		return nil
	}
	var m members
	for {
		s.space()
		if err := s.member(&m, depth); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return nil
		default:
			return s.want("a comma or the end of the object")
		}
	}
}

// member reads `"name": value`.
func (s *scanner) member(m *members, depth int) *Error {
	if s.peek() != '"' {
		return s.want("a member name in double quotes")
	}
	start := s.i
	name, err := s.text()
	if err != nil {
		return err
	}
	if !s.loose && !m.add(name, s.b) {
		twice := &Error{Offset: start, Rule: RuleDuplicate, Reason: "the object has two members of this name; keep one"}
		return twice.under(name.decode(s.b))
	}
	s.space()
	if s.peek() != ':' {
		return s.want("a colon after the member name").under(name.decode(s.b))
	}
	s.i++
	s.space()
	start = s.i
	if err := s.value(depth); err != nil {
		return err.under(name.decode(s.b))
	}
	if depth == 1 && s.top != nil {
		s.top[name.decode(s.b)] = s.b[start:s.i:s.i]
	}
	return nil
}
