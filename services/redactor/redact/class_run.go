package redact

// class is a set of bytes that a run is made of.
type class struct {
	in [256]bool
	// opaque: a marker belongs to the run, whatever is in it.
	opaque bool
	// quoted: backslashes before a quote belong to the quote, which ends the run.
	quoted bool
}

// reach remembers how far a run of one class was followed, so that no byte is
// looked at twice for the many candidates that lie in one run.
type runCache struct {
	from, to int
	known    bool
	ended    bool
}

// maxSlashes is how many backslashes may stand before a quote: JSON within JSON
// within JSON has seven.
const maxSlashes = 15

// run gives the end of the run of class c at i; ended is false if it may go on
// with the text that follows.
func (s *shapeScan) runEnd(c, i int) (end int, ended bool) {
	r := &s.runCaches[c]
	if !r.known || i < r.from || i > r.to {
		*r = runCache{from: i, to: i, known: true}
	}
	if !r.ended {
		r.to, r.ended = s.followClass(&s.shapes.classes[c], r.to)
	}
	return r.to, r.ended || s.closed
}

func (s *shapeScan) followClass(c *class, i int) (end int, ended bool) {
	for i < len(s.text) {
		b := s.text[i]
		switch {
		case b == '[' && c.opaque:
			n, more := markerAt(s.text[i:])
			if more && !s.closed {
				return i, false
			}
			if n == 0 && !c.in[b] {
				return i, true
			}
			i += max(n, 1)
		case b == '\\' && c.quoted:
			n, ends, more := s.countBackslashes(i)
			if more && !s.closed {
				return i, false
			}
			if ends {
				return i, true
			}
			i += n
		case c.in[b]:
			i++
		default:
			return i, true
		}
	}
	return i, false
}

// slashes counts the backslashes at i, and tells whether a quote follows them.
func (s *shapeScan) countBackslashes(i int) (n int, quote, more bool) {
	for i+n < len(s.text) && s.text[i+n] == '\\' {
		if n++; n > maxSlashes {
			return n, false, false
		}
	}
	if i+n == len(s.text) {
		return n, false, true
	}
	return n, isQuote(s.text[i+n]), false
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// sampleSize is how much of a value is judged: what the first part of a long value
// does not show, the rest will not.
const sampleSize = 128

// maxSample is where a sample ends, though there are nothing but markers in it.
const maxSample = 512

// sample gives the first bytes of a value without the markers in it. It is valid
// until the next call.
func (s *shapeScan) sample(from, to int) []byte {
	out := s.sampleBuf[:0]
	for i := from; i < min(to, from+maxSample) && len(out) < sampleSize; i++ {
		if s.text[i] == '[' {
			if n, _ := markerAt(s.text[i:]); n > 0 {
				i += n - 1
				continue
			}
		}
		out = append(out, s.text[i])
	}
	return out
}

// tail is how a find goes on: a run, a text in quotes, or a key block.
type tail struct {
	kind  tailKind
	class int  // of a run
	quote byte // that ends the text,
	level int  // with so many backslashes
	long  bool // of a block: within a token that is key material
	keyed bool // and behind the first of these
}

type tailKind uint8

const (
	runTail tailKind = iota
	quoteTail
	blockTail
)

// follow gives how far the find certainly reaches, and whether it ends there.
func (t *tail) extend(s *shapeScan, from int) (end int, done bool) {
	switch t.kind {
	case quoteTail:
		return s.followQuoted(from, t.quote, t.level)
	case blockTail:
		return s.followBlock(from, t)
	default:
		return s.runEnd(t.class, from)
	}
}

// inQuotes follows a text in quotes to the quote that ends it, or the end of the
// line. level is the number of backslashes before the first quote: one and three
// within JSON within JSON.
func (s *shapeScan) followQuoted(i int, quote byte, level int) (end int, done bool) {
	for i < len(s.text) {
		switch s.text[i] {
		case '\n', '\r', quote:
			return i, true
		case '[':
			n, more := markerAt(s.text[i:])
			if more && !s.closed {
				return i, false
			}
			i += max(n, 1)
		case '\\':
			n, before, more := s.countBackslashes(i)
			if more && !s.closed {
				return i, false
			}
			if before && s.text[i+n] == quote {
				if n < level || n%(2*level+2) == level {
					return i, true
				}
				n++ // a quote within the text
			}
			i += n
		default:
			i++
		}
	}
	return i, s.closed
}
