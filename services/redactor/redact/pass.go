package redact

import (
	"cmp"
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
	k     *known
	views views
	state int32
	held  []byte // input not yet settled
	base  int    // position of held[0] in the whole text
	gone  int    // position up to which the text was released or covered
	pos   int    // position after the last byte read
	found []span // matches not yet settled
	cover int    // position up to which matches cover the text
	taken int    // position after the last match that put its marker
	count int
}

// span is a match: positions in the whole text, and what was found by.
type span struct {
	start, end int
	by         *pattern
}

// newPass begins a text.
func newPass(k *known) *pass { return &pass{k: k, views: views{k: k}} }

// feed reads a piece and appends to dst what has become settled, never a part
// of a rune.
func (p *pass) feed(dst, piece []byte) []byte {
	p.held = append(p.held, piece...)
	p.scan(piece)
	for p.views.next < p.pos && p.views.read(p, false) {
	}
	limit := min(p.pos-int(p.k.text.pending[p.state]), p.views.pending())
	return p.settle(dst, p.base+wholeRunes(p.held, limit-p.base))
}

// end appends all the rest to dst.
func (p *pass) end(dst []byte) []byte {
	for p.views.next < p.pos {
		p.views.read(p, true)
	}
	p.views.unnest(p, true)
	return p.settle(dst, p.pos)
}

// whole takes a text that comes in one piece. Without a match it gives b itself.
func (p *pass) whole(b []byte) []byte {
	p.held = b
	p.scan(b)
	p.views.whole(p)
	if len(p.found) == 0 {
		return b
	}
	return p.settleAll(make([]byte, 0, len(b)))
}

// scan runs the automaton over b and notes the longest match at each end.
func (p *pass) scan(b []byte) {
	a, s := p.k.text, p.state
	for i, c := range b {
		switch {
		case s != 0:
			s = a.next(s, c)
		case nowhere(a.starts, b, i):
			continue
		default:
			s = a.root[c]
		}
		if m := a.match[s]; m >= 0 {
			p.note(p.pos+i+1, &a.patterns[m])
		}
	}
	p.state, p.pos = s, p.pos+len(b)
}

// note adds a match and drops those it contains: the longer one counts.
func (p *pass) note(end int, by *pattern) {
	start := end - len(by.text)
	for n := len(p.found); n > 0 && p.found[n-1].start >= start; n-- {
		p.found = p.found[:n-1]
	}
	p.found = append(p.found, span{start: start, end: end, by: by})
}

// settle appends to dst the text before limit: matches replaced, the rest as it is.
func (p *pass) settle(dst []byte, limit int) []byte {
	dst = p.replace(dst, limit)
	p.forget(limit)
	return dst
}

// settleAll is settle for all of the text, after which the pass is over.
func (p *pass) settleAll(dst []byte) []byte { return p.replace(dst, p.pos) }

func (p *pass) replace(dst []byte, limit int) []byte {
	slices.SortStableFunc(p.found, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	n := 0
	for n < len(p.found) && p.found[n].start < limit {
		dst = p.apply(dst, p.found[n])
		n++
	}
	p.found = append(p.found[:0], p.found[n:]...)
	return p.release(dst, limit)
}

// apply puts the marker of a settled match, or only extends the cover if an
// earlier match reaches into it, or others cover it.
func (p *pass) apply(dst []byte, f span) []byte {
	dst = p.release(dst, f.start)
	if f.start >= p.taken && f.end > p.cover {
		dst = append(dst, f.by.with...)
		p.taken = f.end
		if !f.by.keep {
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

// forget drops what lies before limit and was released or covered: once for many
// matches, for it moves all the rest.
func (p *pass) forget(limit int) {
	n := min(p.gone, limit) - p.base
	p.held = append(p.held[:0], p.held[n:]...)
	p.base += n
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
