package redact

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// A sign before a value, or the last one of a value, may look like the beginning of an
// escape together with what it stands beside: %ab is a byte, or a per cent sign before
// a value that begins with ab. Nothing in the text tells which, so it is read both ways:
// the first lane of a view undoes each escape, and where one was undone others begin,
// to which it is what is written. They are dropped as soon as no match can have begun
// before they came together again.

// lane is one way to read a text: the state of the automaton, and where the last bytes
// came from.
type lane struct {
	state int32
	from  []int
	// joined is the position from which it reads what the first lane reads.
	joined int
}

// view is one of the texts that are made of a text.
type view struct {
	first  lane
	others []lane
	live   int // so many of the others are beyond the escape that they began at
}

// maxLanes bounds the others of one view: those stay that have read most of a value.
// Only values that repeat what escapes are made of need more than a few.
const maxLanes = 8

func (w *view) reset() {
	w.first.state, w.first.from = 0, w.first.from[:0]
	w.others, w.live = w.others[:0], 0
}

// pending is the position from which the text up to end may still become a match.
func (w *view) pending(a *automaton, end int) int {
	out := w.first.begin(a, end)
	for i := range w.others {
		out = min(out, w.others[i].begin(a, end))
	}
	return out
}

// begin is where that begins which may still become a match, or otherwise.
func (l *lane) begin(a *automaton, otherwise int) int {
	if n := int(a.pending[l.state]); n > 0 {
		return l.from[len(l.from)-n]
	}
	return otherwise
}

// origin is where the last n bytes begin that a lane read and that follow it.
func (l *lane) origin(follow []char, n int) int {
	if n <= len(follow) {
		return follow[len(follow)-n].start
	}
	return l.from[len(l.from)+len(follow)-n]
}

// feed runs one automaton in all lanes.
func (v *views) feed(p *pass, which int, c byte, start, end int) {
	w := &v.view[which]
	v.take(p, which, &w.first, c, start, end)
	if w.live == 0 {
		return
	}
	for i := range w.live {
		v.take(p, which, &w.others[i], c, start, end)
	}
	w.prune(v.k.views[which])
}

func (v *views) take(p *pass, which int, l *lane, c byte, start, end int) {
	a := v.k.views[which]
	if l.state == 0 {
		l.from = l.from[:0]
		if l.state = a.root[c]; l.state == 0 {
			return
		}
	} else {
		l.state = a.next(l.state, c)
	}
	if len(l.from) > 4*v.k.longest {
		l.from = append(l.from[:0], l.from[len(l.from)-v.k.longest:]...)
	}
	l.from = append(l.from, start)
	if m := a.match[l.state]; m >= 0 {
		pat := &a.patterns[m]
		v.note(p, which, pat, l.origin(nil, len(pat.text)), end)
	}
}

// note keeps a match that the text itself does not show.
func (v *views) note(p *pass, which int, pat *pattern, first, end int) {
	if from, to := first-p.base, end-p.base; !utf8.RuneStart(p.held[from]) || wholeRunes(p.held, to) != to {
		return // a part of a rune, which would be left broken
	}
	if end-first == len(pat.text) && (which != viewHex || !mixedCase(p.held[first-p.base:end-p.base])) {
		return
	}
	p.found = append(p.found, span{start: first, end: end, by: pat})
}

// undone takes what an escape means, and in other lanes what it is written as: in the
// text, and as nested, if its own signs were escaped.
func (v *views) undone(p *pass, nested []char, read []byte, start, end int) {
	written := p.held[start-p.base : end-p.base]
	if len(written) > 1 {
		v.written = v.written[:0]
		for i, c := range written {
			v.written = append(v.written, char{c, start + i, start + i + 1})
		}
		v.fork(p, v.written, len(nested) < 2)
		if len(nested) > 1 && len(nested) < len(written) {
			v.written = append(v.written[:0], nested...)
			v.fork(p, v.written, true)
		}
	}
	for _, c := range read {
		if c != '\\' {
			v.step(p, c, start, end)
		}
	}
	if len(written) > 1 {
		for i := range v.view {
			w := &v.view[i]
			if w.live = len(w.others); w.live > 0 {
				w.prune(v.k.views[i])
				w.limit(v.k.views[i])
			}
		}
	}
}

// fork begins lanes to which an escape is what is written; one: it is one escape, and
// may stand for one that was escaped again.
func (v *views) fork(p *pass, written []char, one bool) {
	inner := 0
	if one {
		inner = innermost(written)
	}
	as := written[:0]
	for _, c := range written { // backslashes mean nothing
		if c.c != '\\' {
			as = append(as, c)
		}
	}
	v.forkAs(p, as)
	if inner > 1 {
		as[inner-1] = char{as[0].c, as[0].start, as[inner-1].end}
		v.forkAs(p, as[inner-1:])
	}
}

// innermost is where in %2541 and in &amp;lt; that begins which follows the last sign.
func innermost(written []char) int {
	n := len(written)
	switch written[0].c {
	case '%':
		return n - 2
	case '&':
		for i := n - 2; i > 0; i-- {
			if written[i].c == ';' {
				return i + 1
			}
		}
	}
	return 0
}

func (v *views) forkAs(p *pass, as []char) {
	if len(as) == 0 {
		return
	}
	for which := range v.view {
		w := &v.view[which]
		v.forkLane(p, which, &w.first, as)
		for i := range w.live {
			v.forkLane(p, which, &w.others[i], as)
		}
	}
}

// forkLane lets a lane read what is written, and makes it one of the others if a match
// may follow.
func (v *views) forkLane(p *pass, which int, l *lane, as []char) {
	a, w, s := v.k.views[which], &v.view[which], l.state
	for i, c := range as {
		b := c.c
		if which == viewHex {
			b = fold(b)
		}
		s = a.next(s, b)
		if m := a.match[s]; m >= 0 {
			pat := &a.patterns[m]
			v.note(p, which, pat, l.origin(as[:i+1], len(pat.text)), c.end)
		}
	}
	n := int(a.pending[s])
	if n == 0 || reads(w.others[w.live:], s) {
		return
	}
	w.add(lane{state: s, joined: as[len(as)-1].end})
	from := &w.others[len(w.others)-1].from
	if more := n - len(as); more > 0 {
		*from = append(*from, l.from[len(l.from)-more:]...)
	}
	for _, c := range as[max(0, len(as)-n):] {
		*from = append(*from, c.start)
	}
}

// add makes room for one more, in that of one that is over if there is any.
func (w *view) add(l lane) {
	if n := len(w.others); n < cap(w.others) {
		w.others = w.others[:n+1]
		l.from = w.others[n].from[:0]
		w.others[n] = l
		return
	}
	w.others = append(w.others, l)
}

// prune drops the lanes that find nothing that the first does not find.
func (w *view) prune(a *automaton) {
	n := 0
	for i := range w.others {
		l := &w.others[i]
		if i < w.live && (l.state == w.first.state || l.begin(a, l.joined) >= l.joined || reads(w.others[:n], l.state)) {
			continue
		}
		if n != i {
			w.others[n], w.others[i] = w.others[i], w.others[n]
		}
		n++
	}
	w.live -= len(w.others) - n
	w.others = w.others[:n]
}

// limit keeps the lanes that have read most.
func (w *view) limit(a *automaton) {
	if len(w.others) > maxLanes {
		slices.SortStableFunc(w.others, func(x, y lane) int { return cmp.Compare(a.pending[y.state], a.pending[x.state]) })
		w.others, w.live = w.others[:maxLanes], maxLanes
	}
}

// reads reports that one of the lanes is in that state.
func reads(lanes []lane, state int32) bool {
	for i := range lanes {
		if lanes[i].state == state {
			return true
		}
	}
	return false
}
