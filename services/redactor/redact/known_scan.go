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
type knownScan struct {
	known     *knownValues
	views     viewSet
	state     int32
	held      []byte       // input not yet settled
	base      int          // position of held[0] in the whole text
	emitted   int          // position up to which the text was released or covered
	readPos   int          // position after the last byte read
	matches   []knownMatch // matches not yet settled
	coverEnd  int          // position up to which matches cover the text
	markedEnd int          // position after the last match that put its marker
	count     int
}

// span is a match: positions in the whole text, and what was found by.
type knownMatch struct {
	start, end int
	pattern    *pattern
}

// newPass begins a text.
func newKnownScan(k *knownValues) *knownScan { return &knownScan{known: k, views: viewSet{known: k}} }

// feed reads a piece and appends to dst what has become settled, never a part
// of a rune.
func (ks *knownScan) write(dst, piece []byte) []byte {
	ks.held = append(ks.held, piece...)
	ks.runAutomaton(piece)
	for ks.views.next < ks.readPos && ks.views.readChar(ks, false) {
	}
	limit := min(ks.readPos-int(ks.known.text.pending[ks.state]), ks.views.pendingFrom())
	return ks.settle(dst, ks.base+wholeRunes(ks.held, limit-ks.base))
}

// end appends all the rest to dst.
func (ks *knownScan) close(dst []byte) []byte {
	for ks.views.next < ks.readPos {
		ks.views.readChar(ks, true)
	}
	ks.views.resolveNested(ks, true)
	return ks.settle(dst, ks.readPos)
}

// whole takes a text that comes in one piece. Without a match it gives b itself.
func (ks *knownScan) scanAll(b []byte) []byte {
	ks.held = b
	ks.runAutomaton(b)
	ks.views.scanAll(ks)
	if len(ks.matches) == 0 {
		return b
	}
	return ks.settleAll(make([]byte, 0, len(b)))
}

// scan runs the automaton over b and notes the longest match at each end.
func (ks *knownScan) runAutomaton(b []byte) {
	a, s := ks.known.text, ks.state
	for i, c := range b {
		switch {
		case s != 0:
			s = a.next(s, c)
		case cannotStart(a.startFilter, b, i):
			continue
		default:
			s = a.root[c]
		}
		if m := a.match[s]; m >= 0 {
			ks.addMatch(ks.readPos+i+1, &a.patterns[m])
		}
	}
	ks.state, ks.readPos = s, ks.readPos+len(b)
}

// note adds a match and drops those it contains: the longer one counts.
func (ks *knownScan) addMatch(end int, by *pattern) {
	start := end - len(by.text)
	for n := len(ks.matches); n > 0 && ks.matches[n-1].start >= start; n-- {
		ks.matches = ks.matches[:n-1]
	}
	ks.matches = append(ks.matches, knownMatch{start: start, end: end, pattern: by})
}

// settle appends to dst the text before limit: matches replaced, the rest as it is.
func (ks *knownScan) settle(dst []byte, limit int) []byte {
	dst = ks.replace(dst, limit)
	ks.trim(limit)
	return dst
}

// settleAll is settle for all of the text, after which the pass is over.
func (ks *knownScan) settleAll(dst []byte) []byte { return ks.replace(dst, ks.readPos) }

func (ks *knownScan) replace(dst []byte, limit int) []byte {
	slices.SortStableFunc(ks.matches, func(a, b knownMatch) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	n := 0
	for n < len(ks.matches) && ks.matches[n].start < limit {
		dst = ks.applyMatch(dst, ks.matches[n])
		n++
	}
	ks.matches = append(ks.matches[:0], ks.matches[n:]...)
	return ks.emitUntil(dst, limit)
}

// apply puts the marker of a settled match, or only extends the cover if an
// earlier match reaches into it, or others cover it.
func (ks *knownScan) applyMatch(dst []byte, f knownMatch) []byte {
	dst = ks.emitUntil(dst, f.start)
	if f.start >= ks.markedEnd && f.end > ks.coverEnd {
		dst = append(dst, f.pattern.replacement...)
		ks.markedEnd = f.end
		if !f.pattern.keep {
			ks.count++
		}
	}
	ks.coverEnd = max(ks.coverEnd, f.end)
	return dst
}

// release appends the uncovered text before limit.
func (ks *knownScan) emitUntil(dst []byte, limit int) []byte {
	from := max(ks.emitted, ks.coverEnd)
	if limit > from {
		dst = append(dst, ks.held[from-ks.base:limit-ks.base]...)
		from = limit
	}
	ks.emitted = from
	return dst
}

// forget drops what lies before limit and was released or covered: once for many
// matches, for it moves all the rest.
func (ks *knownScan) trim(limit int) {
	n := min(ks.emitted, limit) - ks.base
	ks.held = append(ks.held[:0], ks.held[n:]...)
	ks.base += n
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
