package redact

// class is a set of bytes. A run is a sequence of bytes of one class.
type class struct {
	in [256]bool
	// opaque: a marker belongs to the run, whatever it contains.
	opaque bool
	// quoted: a quote ends the run, and the backslashes before it belong to the quote.
	quoted bool
}

// runCache caches how far a run of one class was followed. So no byte is read twice for
// several candidates in one run.
type runCache struct {
	from, to int
	known    bool
	ended    bool
}

// maxSlashes limits the backslashes before a quote. JSON in JSON in JSON has seven.
const maxSlashes = 15

// runEnd returns the end of the run of class c at i; ended is false if following text may
// extend it.
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

// countBackslashes counts the backslashes at i, and reports whether a quote follows. more:
// the text ends before that is known.
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

// sampleSize is how many bytes of a value the heuristics read. The start of a long value
// suffices.
const sampleSize = 128

// maxSample is how many bytes are read for a sample, including skipped markers.
const maxSample = 512

// sample returns the first bytes of a value, without markers. It is valid until the next
// call.
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

// tail is how a growing find continues: as a run, a quoted text, or a key block.
type tail struct {
	kind  tailKind
	class int  // of a run
	quote byte // that ends the text
	level int  // number of backslashes before that quote
	long  bool // block: in a token of key material
	keyed bool // block: after the first such token
}

type tailKind uint8

const (
	runTail tailKind = iota
	quoteTail
	blockTail
)

// extend returns how far the find certainly reaches, and whether it ends there.
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

// followQuoted follows a quoted text to its closing quote, or to the end of the line.
// level is the number of backslashes before the opening quote: one in JSON, three in JSON
// in JSON.
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
				n++ // a nested quote
			}
			i += n
		default:
			i++
		}
	}
	return i, s.closed
}
