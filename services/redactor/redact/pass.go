package redact

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// pass is one text on its way through the automaton. It may be fed in pieces.
//
// A match is settled once no other match can begin at or before its start. The
// current state tells: pending is the length of the longest suffix that may
// still become a match. Only that much is held back.
//
// Of overlapping matches the leftmost, longest one puts its marker; whatever
// any match covers is dropped, so that no remnant of a second secret is left
// (OpenWOP envelope contract §26 case 13).
type pass struct {
	a     *automaton
	state int32
	// layers are read while awake: they are the text itself where it has no escape.
	layers [maxLayers]layer
	awake  bool
	// escaped is the position after the last escape.
	escaped int
	held    []byte // input not yet settled
	base    int    // position of held[0] in the whole text
	gone    int    // position up to which the text was released or covered
	pos     int    // position after the last byte read
	found   []span // matches not yet settled; starts and ends both increase
	cover   int    // position up to which matches cover the text
	taken   int    // position after the last match that put its marker
	count   int
}

// span is a match: positions in the whole text, and the pattern.
type span struct {
	start, end int
	pattern    int32
}

// feed reads a piece and appends to dst what has become settled, never a part
// of a rune.
func (p *pass) feed(dst, piece []byte) []byte {
	p.held = append(p.held, piece...)
	p.scan(piece)
	return p.settle(dst, p.base+wholeRunes(p.held, p.open()-p.base))
}

// end appends all the rest to dst.
func (p *pass) end(dst []byte) []byte { return p.settle(dst, p.pos) }

// scan runs the automaton over b and notes the longest match at each end.
func (p *pass) scan(b []byte) {
	a, from := p.a, p.pos
	slash := 0 // where the next backslash is: what begins just before it may go on behind an escape
	for i, c := range b {
		if slash < i || i == 0 {
			slash = nextSlash(b, i)
		}
		if c == '\\' && !p.awake {
			p.wake(from + i)
		}
		switch {
		case p.state != 0:
			p.state = a.next(p.state, c)
		case slash-i >= startBytes && nowhere(a.starts, b, i):
			if !p.awake {
				continue
			}
		default:
			p.state = a.root[c]
		}
		p.pos = from + i + 1
		if m := a.match[p.state]; m >= 0 {
			p.note(span{p.pos - len(a.patterns[m].text), p.pos, m})
		}
		if p.awake {
			p.read(0, char{c, p.pos - 1, p.pos})
			p.rest()
		}
	}
	p.pos = from + len(b)
}

// nextSlash is the position of the first backslash from i on, or one that is far.
func nextSlash(b []byte, i int) int {
	if n := bytes.IndexByte(b[i:], '\\'); n >= 0 {
		return i + n
	}
	return len(b) + startBytes
}

// note adds a match, unless it lies within another, and drops those that lie
// within it: the longer one counts.
func (p *pass) note(s span) {
	lo := len(p.found)
	for lo > 0 && p.found[lo-1].end > s.start {
		lo--
	}
	kept := p.found[:lo]
	for _, f := range p.found[lo:] {
		if f.start <= s.start && f.end >= s.end {
			return // nothing has been dropped: what lies within s lies within f
		}
		if f.start < s.start || f.end > s.end {
			kept = append(kept, f)
		}
	}
	at, _ := slices.BinarySearchFunc(kept, s.start, func(f span, start int) int { return f.start - start })
	p.found = slices.Insert(kept, at, s)
}

// settle appends to dst the text before limit: matches replaced, the rest as it is.
func (p *pass) settle(dst []byte, limit int) []byte {
	n := 0
	for n < len(p.found) && p.found[n].start < limit {
		dst = p.apply(dst, p.found[n])
		n++
	}
	p.found = append(p.found[:0], p.found[n:]...)
	dst = p.release(dst, limit)
	p.forget()
	return dst
}

// apply puts the marker of a settled match, or only extends the cover if an
// earlier match reaches into it.
func (p *pass) apply(dst []byte, f span) []byte {
	dst = p.release(dst, f.start)
	if f.start >= p.taken {
		pat := p.a.patterns[f.pattern]
		dst = append(dst, pat.with...)
		p.taken = f.end
		if !pat.keep {
			p.count++
		}
	}
	p.cover = max(p.cover, f.end)
	return dst
}

// release appends the uncovered text before limit.
func (p *pass) release(dst []byte, limit int) []byte {
	from := max(p.gone, p.cover)
	if limit > from {
		dst = append(dst, p.held[from-p.base:limit-p.base]...)
		from = limit
	}
	p.gone = from
	return dst
}

// forget drops what was released or covered: once for many matches, for it moves
// all the rest.
func (p *pass) forget() {
	p.held = append(p.held[:0], p.held[p.gone-p.base:]...)
	p.base = p.gone
}

// wholeRunes is the largest number of bytes of b, up to n, that does not end
// within a rune.
func wholeRunes(b []byte, n int) int {
	for start := n - 1; start >= 0 && start > n-utf8.UTFMax; start-- {
		if !utf8.RuneStart(b[start]) {
			continue
		}
		if utf8.FullRune(b[start:n]) {
			return n
		}
		return start
	}
	return n
}
