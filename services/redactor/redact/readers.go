package redact

import "bytes"

// reader finds what a rule takes out, where a word of it is.
type reader func(s *scan, r *shape, word string, at int) verdict

// readers are those rules whose form is more than a row of steps.
func readers(name string) reader {
	switch name {
	case "":
		return readSteps
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

// Least lengths of what stands in an authorization header, in bytes.
const (
	leastCredential = 6  // behind a scheme
	leastBearer     = 16 // without the header's name, or without a scheme
)

// readAuthorization finds the credential of a header, or of a member that is called
// like one.
func readAuthorization(s *scan, _ *shape, word string, at int) verdict {
	c := &cursor{s: s, i: at + len(word)}
	c.quote()
	if c.peek() == ']' {
		c.i++
	}
	c.spaces()
	if !c.sep() {
		return c.failed()
	}
	c.spaces()
	c.quote()
	least := leastBearer
	if c.scheme() {
		least = leastCredential
	}
	if c.short {
		return verdict{state: more}
	}
	return s.credential(c.i, least)
}

// scheme steps over the scheme of a header's value, if there is one.
func (c *cursor) scheme() bool {
	from := c.i
	for c.i-from < 20 && isLetter(c.peek()) {
		c.i++
	}
	if name := bytes.ToLower(c.s.text[from:c.i]); c.i > from && c.spaces() > 0 && isScheme(name) {
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

// readBearer finds what follows the word, wherever it stands.
func readBearer(s *scan, _ *shape, word string, at int) verdict {
	if !s.boundary(at) {
		return verdict{}
	}
	c := &cursor{s: s, i: at + len(word)}
	if c.spaces() == 0 && !c.take("%20") && !c.take("+") {
		return c.failed()
	}
	c.quote()
	if c.short {
		return verdict{state: more}
	}
	return s.credential(c.i, leastBearer)
}

// credential judges what stands at i.
func (s *scan) credential(i, least int) verdict {
	t := tail{kind: runTail, class: s.shapes.header}
	end, ended := t.follow(s, i)
	ended = ended || s.closed
	v := s.sample(i, end)
	switch {
	case !ended && len(v) < sampleSize && end-i < maxSample:
		return verdict{state: more}
	case len(v) < least || wordy(v, least == leastBearer) || least == leastBearer && entropy(v) < leastBits:
		return verdict{}
	}
	return verdict{state: yes, start: i, end: end, grows: !ended, tail: t}
}

// Bounds of the part of a URL before its host, in bytes.
const (
	maxAuthority = 2048
	leastURLPass = 4
)

// readURL finds the password of scheme://user:password@host.
func readURL(s *scan, _ *shape, word string, at int) verdict {
	i := at + len(word)
	if at == 0 || !isLetter(s.text[at-1]) && !isDigit(s.text[at-1]) {
		return verdict{}
	}
	end, ended := s.run(s.shapes.authority, i)
	if !ended && end-i < maxAuthority {
		return verdict{state: more}
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
	if len(v) < leastURLPass || entropy(v) < leastPassBs || isTemplate(v) {
		return verdict{}
	}
	return verdict{state: yes, start: colon + 1, end: host}
}
