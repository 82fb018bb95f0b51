package redact

import "bytes"

// Limits of a block of key material, in bytes.
const (
	maxLabel   = 64
	maxPreface = 512 // headers such as DEK-Info between the first line and the key
	maxHeader  = 256
	maxGap     = 256 // white space and quotes between two lines
	longToken  = 20  // shortest line of key material, except the last
)

const (
	blockKind = "PRIVATE KEY"
	blockRule = "-----"
	blockEnd  = "-----END "
)

// readBlock finds a private key in PEM or PGP armor, also without its end, and with escaped
// line breaks. The first line alone is not a key.
func readBlock(s *shapeScan, _ *shape, word string, at int) verdict {
	i := at + len(word)
	label := s.text[i:min(len(s.text), i+maxLabel)]
	n := bytes.Index(label, []byte(blockRule))
	for k, c := range label {
		if k == n {
			break
		}
		if !isUpper(c) && !isDigit(c) && c != ' ' && c != '-' {
			return verdict{}
		}
	}
	switch {
	case n < 0 && len(label) < maxLabel:
		return verdict{state: needMore}
	case n < 0 || !bytes.Contains(label[:n], []byte(blockKind)):
		return verdict{}
	}
	body := i + n + len(blockRule)
	t := tail{kind: blockTail}
	end, done := s.followBlock(body, &t)
	if end == body || !s.hasLongToken(body, end) {
		if !done && !s.closed && len(s.text)-body < maxPreface {
			return verdict{state: needMore}
		}
		return verdict{}
	}
	return verdict{state: matched, start: at, end: end, grows: !done && !s.closed, tail: t}
}

// hasLong reports that there is key material within the first bytes of a block.
func (s *shapeScan) hasLongToken(from, to int) bool {
	row := 0
	for i := from; i < to && i < from+maxPreface; i++ {
		if s.text[i] == '[' {
			if n, _ := markerAt(s.text[i:]); n > 0 {
				i, row = i+n-1, 0
				continue
			}
		}
		if !isBase64(s.text[i]) {
			row = 0
			continue
		}
		if row++; row >= longToken {
			return true
		}
	}
	return false
}

// isBase64 reports a base64 character. ~ is included, since / is ~1 in a JSON pointer.
func isBase64(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '=' || c == '~'
}

// followBlock follows key material from i: headers, long tokens, gaps between lines, and the
// last line. It returns how far the block certainly reaches, and whether it ends there. t
// is the state from before i.
func (s *shapeScan) followBlock(i int, t *tail) (end int, done bool) {
	for {
		p := i
		if !t.long {
			var wait bool
			if p, wait = s.skipGap(i); wait {
				return i, s.closed
			}
		}
		q := p
		for q < len(s.text) && isBase64(s.text[q]) {
			q++
		}
		if t.long || q-p >= longToken {
			i, t.long, t.keyed = q, q == len(s.text), true
			if t.long {
				return i, s.closed
			}
			continue
		}
		if q == len(s.text) && !s.closed {
			return i, false
		}
		n, v := s.readShortToken(p, q, t.keyed)
		switch v {
		case needMore:
			return i, false
		case noMatch:
			return max(i, n), true
		}
		i = n
	}
}

// skipGap skips white space, line breaks, quotes and escapes between two lines.
func (s *shapeScan) skipGap(i int) (end int, wait bool) {
	for p := i; ; p++ {
		switch {
		case p-i > maxGap:
			return p, false
		case p >= len(s.text):
			return p, true
		case s.text[p] == '\\':
			if p+1 >= len(s.text) {
				return p, true
			}
			if c := s.text[p+1]; c == 'n' || c == 'r' || c == 't' {
				p++
			}
		case !isGap(s.text[p]):
			return p, false
		}
	}
}

func isGap(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', '"', '\'', '`', ',', '>', '|':
		return true
	}
	return false
}

// readShortToken decides about the short or empty token text[p:q]: the last line, a header,
// the end of the block, or text after a block without an end. It returns how far the block
// reaches, and matched if it may continue.
func (s *shapeScan) readShortToken(p, q int, keyed bool) (end int, v matchState) {
	rest := s.text[q:]
	if p == q {
		return s.readBlockEnd(q)
	}
	if !keyed {
		return s.readHeaderLine(q)
	}
	blanks := 0
	for blanks < len(rest) && blanks < maxSpaces && (rest[blanks] == ' ' || rest[blanks] == '\t') {
		blanks++
	}
	if blanks == len(rest) {
		if !s.closed {
			return 0, needMore
		}
		return q, matched
	}
	if c := rest[blanks]; blanks == 0 || c == '\n' || c == '\r' || c == '\\' || c == '-' || c == '[' {
		return q, matched
	}
	return 0, noMatch
}

// readBlockEnd skips a marker, or the END line at i.
func (s *shapeScan) readBlockEnd(i int) (end int, v matchState) {
	rest := s.text[i:]
	n, open := markerAt(rest)
	switch {
	case open && !s.closed:
		return 0, needMore
	case n > 0:
		return i + n, matched
	case len(rest) < len(blockEnd) && bytes.HasPrefix([]byte(blockEnd), rest) && !s.closed:
		return 0, needMore
	case !bytes.HasPrefix(rest, []byte(blockEnd)):
		return 0, noMatch
	}
	label := rest[len(blockEnd):min(len(rest), len(blockEnd)+maxLabel)]
	if n = bytes.Index(label, []byte(blockRule)); n >= 0 {
		return i + len(blockEnd) + n + len(blockRule), noMatch
	}
	if len(label) < maxLabel && !s.closed {
		return 0, needMore
	}
	return 0, noMatch
}

// readHeaderLine skips a line such as "DEK-Info: AES-128-CBC,0F"; q is the end of the first
// letters of its name.
func (s *shapeScan) readHeaderLine(q int) (end int, v matchState) {
	p := q
	for p < len(s.text) && p-q < maxName && (isLetter(s.text[p]) || s.text[p] == '-') {
		p++
	}
	if p < len(s.text) && s.text[p] != ':' {
		return 0, noMatch
	}
	for ; p < len(s.text) && p-q < maxHeader; p++ {
		if c := s.text[p]; c == '\n' || c == '\r' || c == '\\' {
			return p, matched
		}
	}
	if p == len(s.text) && p-q < maxHeader && !s.closed {
		return 0, needMore
	}
	return 0, noMatch
}
