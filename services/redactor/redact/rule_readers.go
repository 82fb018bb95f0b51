package redact

import "bytes"

// reader decides a rule at one of its words.
type reader func(s *shapeScan, r *shape, word string, at int) verdict

// readers returns the reader of that name; nil if there is none. The empty name is the
// reader of patterns.
func readers(name string) reader {
	switch name {
	case "":
		return readPattern
	case "assignment":
		return readAssignment
	case "authorization":
		return readAuthorization
	case "bearer":
		return readBearer
	case "url":
		return readURL
	case "block":
		return readBlock
	}
	return nil
}

// Minimum lengths of a credential, in bytes.
const (
	minCredential = 6  // after a scheme
	minBearer     = 16 // without a header name or a scheme
)

// readAuthorization finds the credential of an authorization header, or of a member with
// that name.
func readAuthorization(s *shapeScan, _ *shape, word string, at int) verdict {
	c := &cursor{s: s, i: at + len(word)}
	c.skipQuote()
	if c.peek() == ']' {
		c.i++
	}
	c.skipSpaces()
	if !c.skipSeparator() {
		return c.noMatchOrMore()
	}
	c.skipSpaces()
	c.skipQuote()
	least := minBearer
	if c.skipScheme() {
		least = minCredential
	}
	if c.short {
		return verdict{state: needMore}
	}
	return s.readCredential(c.i, least)
}

// skipScheme skips the scheme of a header's value, if there is one.
func (c *cursor) skipScheme() bool {
	from := c.i
	for c.i-from < 20 && isLetter(c.peek()) {
		c.i++
	}
	if name := bytes.ToLower(c.s.text[from:c.i]); c.i > from && c.skipSpaces() > 0 && isScheme(name) {
		return true
	}
	if !c.short {
		c.i = from
	}
	return false
}

func isScheme(name []byte) bool {
	switch string(name) {
	case "bearer", "basic", "token", "digest", "apikey", "bot", "key":
		return true
	}
	return false
}

// readBearer finds the credential after the word bearer, in any text.
func readBearer(s *shapeScan, _ *shape, word string, at int) verdict {
	if !s.atWordBoundary(at) {
		return verdict{}
	}
	c := &cursor{s: s, i: at + len(word)}
	if c.skipSpaces() == 0 && !c.skipText("%20") && !c.skipText("+") {
		return c.noMatchOrMore()
	}
	c.skipQuote()
	if c.short {
		return verdict{state: needMore}
	}
	return s.readCredential(c.i, minBearer)
}

// readCredential decides about the credential at i.
func (s *shapeScan) readCredential(i, least int) verdict {
	t := tail{kind: runTail, class: s.shapes.header}
	end, ended := t.extend(s, i)
	ended = ended || s.closed
	v := s.sample(i, end)
	switch {
	case !ended && len(v) < sampleSize && end-i < maxSample:
		return verdict{state: needMore}
	case len(v) < least || isWords(v, least == minBearer) || least == minBearer && entropy(v) < minKeyEntropy:
		return verdict{}
	}
	return verdict{state: matched, start: i, end: end, grows: !ended, tail: t}
}

// Limits of the part of a URL before its host, in bytes.
const (
	maxAuthority   = 2048
	minURLPassword = 4
)

// readURL finds the password of scheme://user:password@host.
func readURL(s *shapeScan, _ *shape, word string, at int) verdict {
	i := at + len(word)
	if at == 0 || !isLetter(s.text[at-1]) && !isDigit(s.text[at-1]) {
		return verdict{}
	}
	end, ended := s.runEnd(s.shapes.authority, i)
	if !ended && end-i < maxAuthority {
		return verdict{state: needMore}
	}
	colon, host := -1, -1
	for p := i; p < end && p < i+maxAuthority; p++ {
		switch s.text[p] {
		case '[':
			n, _ := markerAt(s.text[p:])
			p += max(n, 1) - 1
		case ':':
			if colon < 0 {
				colon = p
			}
		case '@':
			host = p
		}
	}
	if colon < 0 || host < colon {
		return verdict{}
	}
	v := s.sample(colon+1, host)
	if len(v) < minURLPassword || entropy(v) < minPasswordEntropy || isTemplate(v) {
		return verdict{}
	}
	return verdict{state: matched, start: colon + 1, end: host}
}
