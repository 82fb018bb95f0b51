package redact

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// A character before or at the end of a value can look like part of an escape: %ab is one
// byte, or a percent sign before a value that starts with ab. The text is ambiguous, so it
// is read in both ways. The primary reading of a view undoes each escape. At each escape
// alternative readings start, in which the escape is literal text. An alternative ends
// when no match can have started before it joined the primary reading.

// reading is one way to read a text: the state of the automaton, and the origins of the
// last bytes.
type reading struct {
	state   int32
	origins []int
	// joinedAt is the position from which it reads the same bytes as the primary reading.
	joinedAt int
}

// view is the state of one view: a primary reading, and alternatives.
type view struct {
	primary      reading
	alternatives []reading
	active       int // number of alternatives past the escape at which they started
}

// maxAlternatives limits the alternatives of one view. Those with the longest partial match
// stay. Only values that repeat the characters of escapes need more than a few.
const maxAlternatives = 8

func (w *view) reset() {
	w.primary.state, w.primary.origins = 0, w.primary.origins[:0]
	w.alternatives, w.active = w.alternatives[:0], 0
}

// pendingFrom returns the position from which the text up to end may still become a match.
func (w *view) pendingFrom(a *automaton, end int) int {
	out := w.primary.matchStart(a, end)
	for i := range w.alternatives {
		out = min(out, w.alternatives[i].matchStart(a, end))
	}
	return out
}

// matchStart returns the start of the longest partial match, or otherwise if there is none.
func (r *reading) matchStart(a *automaton, otherwise int) int {
	if n := int(a.pending[r.state]); n > 0 {
		return r.origins[len(r.origins)-n]
	}
	return otherwise
}

// originOf returns the position of the nth last byte of the reading and the bytes in follow.
func (r *reading) originOf(follow []sourceByte, n int) int {
	if n <= len(follow) {
		return follow[len(follow)-n].start
	}
	return r.origins[len(r.origins)+len(follow)-n]
}

// feedView feeds a byte to all readings of one view.
func (v *viewSet) feedView(ks *knownScan, which int, c byte, start, end int) {
	w := &v.view[which]
	v.feedReading(ks, which, &w.primary, c, start, end)
	if w.active == 0 {
		return
	}
	for i := range w.active {
		v.feedReading(ks, which, &w.alternatives[i], c, start, end)
	}
	w.prune(v.known.views[which])
}

func (v *viewSet) feedReading(ks *knownScan, which int, r *reading, c byte, start, end int) {
	a := v.known.views[which]
	if r.state == 0 {
		r.origins = r.origins[:0]
		if r.state = a.root[c]; r.state == 0 {
			return
		}
	} else {
		r.state = a.next(r.state, c)
	}
	if len(r.origins) > 4*v.known.longest {
		r.origins = append(r.origins[:0], r.origins[len(r.origins)-v.known.longest:]...)
	}
	r.origins = append(r.origins, start)
	if m := a.match[r.state]; m >= 0 {
		pat := &a.patterns[m]
		v.addMatch(ks, which, pat, r.originOf(nil, len(pat.text)), end)
	}
}

// addMatch records a match, unless the automaton over the text itself finds it.
func (v *viewSet) addMatch(ks *knownScan, which int, pat *pattern, first, end int) {
	if from, to := first-ks.base, end-ks.base; !utf8.RuneStart(ks.held[from]) || wholeRunes(ks.held, to) != to {
		return // it would split a rune
	}
	found := ks.held[first-ks.base : end-ks.base]
	if end-first == len(pat.text) && !pat.viewOnly && (which != viewHex || !hasMixedCase(found)) {
		return
	}
	if which == viewHex && v.dump.dropped > first && !isDump(found) {
		return
	}
	ks.matches = append(ks.matches, knownMatch{start: first, end: end, pattern: pat})
}

// feedEscape feeds the decoded escape to the existing readings, and starts alternatives in
// which it is literal text: as written in the text, and as nested if its own characters
// were escaped.
func (v *viewSet) feedEscape(ks *knownScan, nested []sourceByte, read []byte, start, end int) {
	written := ks.held[start-ks.base : end-ks.base]
	if len(written) > 1 {
		v.written = v.written[:0]
		for i, c := range written {
			v.written = append(v.written, sourceByte{c, start + i, start + i + 1})
		}
		v.forkWritten(ks, v.written, len(nested) < 2)
		if len(nested) > 1 && len(nested) < len(written) {
			v.written = append(v.written[:0], nested...)
			v.forkWritten(ks, v.written, true)
		}
	}
	for _, c := range read {
		if c != '\\' {
			v.feedViews(ks, c, start, end)
		}
	}
	if len(written) > 1 {
		for i := range v.view {
			w := &v.view[i]
			if w.active = len(w.alternatives); w.active > 0 {
				w.prune(v.known.views[i])
				w.limit(v.known.views[i])
			}
		}
	}
}

// forkWritten starts alternatives in which an escape is literal text. single: written is one
// escape, which may contain an escape that was escaped again.
func (v *viewSet) forkWritten(ks *knownScan, written []sourceByte, single bool) {
	inner := 0
	if single {
		inner = innermostEscape(written)
	}
	as := written[:0]
	for _, c := range written { // the views have no backslashes
		if c.value != '\\' {
			as = append(as, c)
		}
	}
	v.forkViews(ks, as)
	if inner > 1 {
		as[inner-1] = sourceByte{as[0].value, as[0].start, as[inner-1].end}
		v.forkViews(ks, as[inner-1:])
	}
}

// innermostEscape returns where the innermost escape of %2541 or &amp;lt; continues after
// its first character.
func innermostEscape(written []sourceByte) int {
	n := len(written)
	switch written[0].value {
	case '%':
		return n - 2
	case '&':
		for i := n - 2; i > 0; i-- {
			if written[i].value == ';' {
				return i + 1
			}
		}
	}
	return 0
}

func (v *viewSet) forkViews(ks *knownScan, as []sourceByte) {
	if len(as) == 0 {
		return
	}
	for which := range v.view {
		w := &v.view[which]
		v.forkReading(ks, which, &w.primary, as)
		for i := range w.active {
			v.forkReading(ks, which, &w.alternatives[i], as)
		}
	}
}

// forkReading reads the literal text from a reading's state, and adds the result as an
// alternative if a match may follow.
func (v *viewSet) forkReading(ks *knownScan, which int, r *reading, as []sourceByte) {
	a, w, s := v.known.views[which], &v.view[which], r.state
	for i, c := range as {
		b := c.value
		if which == viewHex {
			b = fold(b)
		}
		s = a.next(s, b)
		if m := a.match[s]; m >= 0 {
			pat := &a.patterns[m]
			v.addMatch(ks, which, pat, r.originOf(as[:i+1], len(pat.text)), c.end)
		}
	}
	n := int(a.pending[s])
	if n == 0 || hasState(w.alternatives[w.active:], s) {
		return
	}
	w.addAlternative(reading{state: s, joinedAt: as[len(as)-1].end})
	from := &w.alternatives[len(w.alternatives)-1].origins
	if more := n - len(as); more > 0 {
		*from = append(*from, r.origins[len(r.origins)-more:]...)
	}
	for _, c := range as[max(0, len(as)-n):] {
		*from = append(*from, c.start)
	}
}

// addAlternative adds an alternative, and reuses the memory of an ended one.
func (w *view) addAlternative(r reading) {
	if n := len(w.alternatives); n < cap(w.alternatives) {
		w.alternatives = w.alternatives[:n+1]
		r.origins = w.alternatives[n].origins[:0]
		w.alternatives[n] = r
		return
	}
	w.alternatives = append(w.alternatives, r)
}

// prune removes the alternatives that can find no match that another reading does not find.
func (w *view) prune(a *automaton) {
	n := 0
	for i := range w.alternatives {
		r := &w.alternatives[i]
		if i < w.active && (r.state == w.primary.state || r.matchStart(a, r.joinedAt) >= r.joinedAt || hasState(w.alternatives[:n], r.state)) {
			continue
		}
		if n != i {
			w.alternatives[n], w.alternatives[i] = w.alternatives[i], w.alternatives[n]
		}
		n++
	}
	w.active -= len(w.alternatives) - n
	w.alternatives = w.alternatives[:n]
}

// limit keeps the alternatives with the longest partial match.
func (w *view) limit(a *automaton) {
	if len(w.alternatives) > maxAlternatives {
		slices.SortStableFunc(w.alternatives, func(x, y reading) int { return cmp.Compare(a.pending[y.state], a.pending[x.state]) })
		w.alternatives, w.active = w.alternatives[:maxAlternatives], maxAlternatives
	}
}

// hasState reports that one of the readings is in that state.
func hasState(lanes []reading, state int32) bool {
	for i := range lanes {
		if lanes[i].state == state {
			return true
		}
	}
	return false
}
