package seam

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A request holds a document that is to be judged, and it may be one that no strict
// reader takes: with a member twice, nested too deep, not UTF-8. That is for the
// pipeline to refuse, as it would refuse it from a model; the request around it is
// read strictly (OpenWOP envelope contract §23.1, §26 case 5).

var errNoObject = errors.New("not a JSON object")

// member is the one that is taken out.
const memberEnvelope = "envelope"

// split takes the envelope out of a body, and gives the body with null in its place.
// envelope is nil if there is none, or more than one: two readers would not agree.
// Errors say that the body is no JSON object.
func split(body []byte) (envelope json.RawMessage, rest []byte, err error) {
	s := cutter{b: body}
	if !s.take('{') {
		return nil, nil, errNoObject
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return nil, nil, errNoObject
		}
		name, ok := s.name()
		if !ok || !s.take(':') {
			return nil, nil, errNoObject
		}
		s.space()
		start := s.i
		if !s.skip() {
			return nil, nil, errNoObject
		}
		if name != memberEnvelope || envelope != nil {
			continue // a second one stays in the rest, whose reader refuses it
		}
		envelope = body[start:s.i]
		rest = append(append(append([]byte(nil), body[:start]...), "null"...), body[s.i:]...)
	}
	if envelope == nil {
		return nil, body, nil
	}
	return envelope, rest, wellFormed(envelope, s.deepest)
}

// maxNesting is more than the pipeline lets pass and less than encoding/json can
// read: deeper documents are left to the pipeline.
const maxNesting = 1_000

func wellFormed(doc []byte, depth int) error {
	if depth <= maxNesting && !json.Valid(doc) {
		return errNoObject
	}
	return nil
}

// cutter finds the ends of values by their brackets alone, whatever their depth.
type cutter struct {
	b       []byte
	i       int
	deepest int
}

func (s *cutter) space() {
	for s.i < len(s.b) && bytes.IndexByte([]byte(" \t\r\n"), s.b[s.i]) >= 0 {
		s.i++
	}
}

// take steps past a byte, and space before it.
func (s *cutter) take(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// name reads the name of a member.
func (s *cutter) name() (name string, ok bool) {
	s.space()
	start := s.i
	if s.i >= len(s.b) || s.b[s.i] != '"' || !s.skip() {
		return "", false
	}
	return name, json.Unmarshal(s.b[start:s.i], &name) == nil
}

// skip steps past a value.
func (s *cutter) skip() bool {
	depth := 0
	for start := s.i; s.i < len(s.b); {
		switch c := s.b[s.i]; {
		case c == '"':
			if !s.text() {
				return false
			}
		case c == '{' || c == '[':
			depth++
			s.deepest = max(s.deepest, depth)
			s.i++
		case depth == 0 && bytes.IndexByte([]byte(",}] \t\r\n"), c) >= 0:
			return s.i > start
		case c == '}' || c == ']':
			depth--
			s.i++
		default:
			s.i++
			if depth == 0 {
				continue // a number or a word goes on
			}
		}
		if depth == 0 && s.ended() {
			return true
		}
	}
	return false
}

// ended reports whether the value that was just stepped past is one by itself: a
// text, an object or a list.
func (s *cutter) ended() bool {
	c := s.b[s.i-1]
	return c == '"' || c == '}' || c == ']'
}

// text steps past a string.
func (s *cutter) text() bool {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return true
		}
	}
	return false
}
