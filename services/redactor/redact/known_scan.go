package redact

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// knownScan is the first layer for one text. The text may be written in pieces.
//
// A match is settled when no other match can start at or before its start. The automaton's
// state determines that: pending is the length of the longest suffix that may still become
// a match. Only that suffix is held back.
//
// Of overlapping matches, the leftmost and longest one determines the marker. All text that
// any match covers is dropped, so that no remnant of a second secret is left (OpenWOP
// envelope contract §26 case 13).
type knownScan struct {
	known     *knownValues
	views     viewSet
	state     int32
	held      []byte       // input not yet settled
	base      int          // position of held[0] in the whole text
	emitted   int          // position up to which the text was emitted or dropped
	readPos   int          // position after the last byte read
	matches   []knownMatch // matches not yet settled
	coverEnd  int          // position up to which matches cover the text
	markedEnd int          // end of the last match whose marker was emitted
	count     int
	// layer is how many layers were undone to get this text. decoded is a buffer for the next one.
	layer   int
	decoded []byte
	layered []layeredMatch
	budget  *layerBudget
	call    *callBudget // nil means the text is all of the call
}

// knownMatch is a match: its positions in the whole text, and its pattern.
type knownMatch struct {
	start, end int
	pattern    *pattern
}

// newKnownScan starts a text.
func newKnownScan(k *knownValues) *knownScan { return &knownScan{known: k, views: viewSet{known: k}} }

// write adds a piece and appends the settled text to dst, never a part of a rune.
func (ks *knownScan) write(dst, piece []byte) []byte {
	ks.held = append(ks.held, piece...)
	ks.runAutomaton(piece)
	for ks.views.next < ks.readPos && ks.views.readChar(ks, false) {
	}
	limit := min(ks.readPos-int(ks.known.text.pending[ks.state]), ks.views.pendingFrom())
	return ks.settle(dst, ks.base+wholeRunes(ks.held, limit-ks.base))
}

// close appends the rest of the text to dst.
func (ks *knownScan) close(dst []byte) []byte {
	for ks.views.next < ks.readPos {
		ks.views.readChar(ks, true)
	}
	ks.views.resolveNested(ks, true)
	return ks.settle(dst, ks.readPos)
}

// scanAll redacts a whole text. Without a match it returns b itself.
func (ks *knownScan) scanAll(b []byte) []byte {
	ks.search(b)
	if len(ks.matches) == 0 {
		return b
	}
	return ks.settleAll(make([]byte, 0, len(b)))
}

// search records the matches in a whole text.
func (ks *knownScan) search(b []byte) {
	ks.held = b
	ks.runAutomaton(b)
	ks.views.scanAll(ks)
	ks.searchJoined(b)
	if ks.layer < maxLayers {
		ks.searchLayers(b)
		ks.searchQuotedPrintable(b)
		ks.searchNumbers(b)
	}
	ks.addLayered()
}

// runAutomaton runs the automaton over b and records the longest match at each end.
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

// addMatch adds a match and removes the matches that it contains.
func (ks *knownScan) addMatch(end int, by *pattern) {
	start := end - len(by.text)
	for n := len(ks.matches); n > 0 && ks.matches[n-1].start >= start; n-- {
		ks.matches = ks.matches[:n-1]
	}
	ks.matches = append(ks.matches, knownMatch{start: start, end: end, pattern: by})
}

// settle appends the text before limit to dst, with matches replaced.
func (ks *knownScan) settle(dst []byte, limit int) []byte {
	dst = ks.replace(dst, limit)
	ks.trim(limit)
	return dst
}

// settleAll is settle for the whole text. The scan cannot be used afterwards.
func (ks *knownScan) settleAll(dst []byte) []byte { return ks.replace(dst, ks.readPos) }

func (ks *knownScan) replace(dst []byte, limit int) []byte {
	slices.SortStableFunc(ks.matches, compareMatches)
	n := 0
	for n < len(ks.matches) && ks.matches[n].start < limit {
		dst = ks.applyMatch(dst, ks.matches[n])
		n++
	}
	ks.matches = append(ks.matches[:0], ks.matches[n:]...)
	return ks.emitUntil(dst, limit)
}

// compareMatches orders matches: the leftmost first, then the longest.
func compareMatches(a, b knownMatch) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
}

// applyMatch appends the marker of a settled match. If an earlier match overlaps or covers
// it, it only extends coverEnd.
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

// emitUntil appends the uncovered text before limit.
func (ks *knownScan) emitUntil(dst []byte, limit int) []byte {
	from := max(ks.emitted, ks.coverEnd)
	if limit > from {
		dst = append(dst, ks.held[from-ks.base:limit-ks.base]...)
		from = limit
	}
	ks.emitted = from
	return dst
}

// trim removes emitted text before limit from memory. It moves the rest, so it is called
// once for many matches.
func (ks *knownScan) trim(limit int) {
	n := min(ks.emitted, limit) - ks.base
	ks.held = append(ks.held[:0], ks.held[n:]...)
	ks.base += n
}

// wholeRunes returns the largest number of bytes of b, up to n, that does not split a rune.
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
