package seam

import (
	"bytes"
	"encoding/json"
	"errors"
)

// The envelope in a request may be a document that a strict parser rejects: with
// duplicate members, nested too deep, not UTF-8. The pipeline must refuse it as it
// refuses one from a model. The rest of the request is parsed strictly (OpenWOP
// envelope contract §23.1, §26 case 5).

var errNoObject = errors.New("not a JSON object")

// memberEnvelope is the member to extract.
const memberEnvelope = "envelope"

// splitEnvelope extracts the envelope from a body, and returns the body with null in its
// place. envelope is nil if the body has none. An error means that the body is not a
// JSON object.
func splitEnvelope(body []byte) (envelope json.RawMessage, rest []byte, err error) {
	s := scanner{b: body}
	if !s.consume('{') {
		return nil, nil, errNoObject
	}
	for first := true; !s.consume('}'); first = false {
		if !first && !s.consume(',') {
			return nil, nil, errNoObject
		}
		name, ok := s.readName()
		if !ok || !s.consume(':') {
			return nil, nil, errNoObject
		}
		s.skipSpace()
		start := s.i
		if !s.skipValue() {
			return nil, nil, errNoObject
		}
		if name != memberEnvelope || envelope != nil {
			continue // the strict parser rejects a second one in the rest
		}
		envelope = body[start:s.i]
		rest = append(append(append([]byte(nil), body[:start]...), "null"...), body[s.i:]...)
	}
	if envelope == nil {
		return nil, body, nil
	}
	return envelope, rest, checkWellFormed(envelope, s.deepest)
}

// maxNesting is more than the pipeline accepts and less than encoding/json can parse.
// The pipeline refuses deeper documents.
const maxNesting = 1_000

func checkWellFormed(doc []byte, depth int) error {
	if depth <= maxNesting && !json.Valid(doc) {
		return errNoObject
	}
	return nil
}

// scanner finds the ends of values by their brackets only, at any depth.
type scanner struct {
	b       []byte
	i       int
	deepest int
}

func (s *scanner) skipSpace() {
	for s.i < len(s.b) && bytes.IndexByte([]byte(" \t\r\n"), s.b[s.i]) >= 0 {
		s.i++
	}
}

// consume skips white space and then the byte c, if it follows.
func (s *scanner) consume(c byte) bool {
	s.skipSpace()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// readName reads the name of a member.
func (s *scanner) readName() (name string, ok bool) {
	s.skipSpace()
	start := s.i
	if s.i >= len(s.b) || s.b[s.i] != '"' || !s.skipValue() {
		return "", false
	}
	return name, json.Unmarshal(s.b[start:s.i], &name) == nil
}

// skipValue skips a value.
func (s *scanner) skipValue() bool {
	depth := 0
	for start := s.i; s.i < len(s.b); {
		switch c := s.b[s.i]; {
		case c == '"':
			if !s.skipString() {
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
		if depth == 0 && s.valueEnded() {
			return true
		}
	}
	return false
}

// valueEnded reports whether the last byte ended a string, an object or an array.
func (s *scanner) valueEnded() bool {
	c := s.b[s.i-1]
	return c == '"' || c == '}' || c == ']'
}

// skipString skips a string.
func (s *scanner) skipString() bool {
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
