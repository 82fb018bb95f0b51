package redact

import "slices"

// scan is one text on its way through the second layer. It may be fed in pieces:
// what it takes out never depends on where the text was cut.
//
// Every place where a word of a rule begins is a candidate, and is decided in
// order. A candidate that the text so far cannot decide stops the scan; nothing
// behind it is shown. How much text that may take is bounded by the rule. A
// candidate that is decided may still grow: what it covers is dropped as it
// comes, and need not be held.
//
// The finds may overlap in any way. All that any of them covers is taken out; those
// that overlap share the marker of the first.
type shapeScan struct {
	shapes        *Shapes
	decoded       *decodedText // nil: the text is read as it is
	text          []byte
	closed        bool // no more text follows
	decided       int  // candidates before it are decided
	emitted       int  // text before it was given out or taken out
	coverEnd      int  // finds that begin before shown reach up to here
	coverRule     int  // whose marker stands for what is covered
	markerEmitted bool // and whether it is there already
	count         int
	finds         []find
	applied       int // so many of them have their place in cover
	growing       int // so many of them have no end yet
	markers       []markerSpan
	runCaches     []runCache
	sampleBuf     [sampleSize]byte
}

// find is a part of the text that a rule takes out.
type find struct {
	start, end, rule int
	grows            bool // end is not known yet
	tail             tail
}

// mark is a marker that was in the text already.
type markerSpan struct{ start, end int }

// Bounds of a scan, in bytes.
const (
	// lookBack is how much shown text a reader may look at.
	lookBack = 96
	// manySeen is how many finds are looked through for those that are over.
	compactAbove = 32
	// slack is how much shown text may stay in memory before it is moved out.
	trimThreshold = 4096
)

func newShapeScan(s *Shapes) *shapeScan {
	return &shapeScan{shapes: s, runCaches: make([]runCache, len(s.classes))}
}

// write takes a piece and appends to dst what is settled.
func (s *shapeScan) write(dst, piece []byte) []byte {
	if s.decoded == nil {
		s.text = append(s.text, piece...)
	} else {
		s.text = s.decoded.write(s.text, piece, s.closed)
	}
	s.extendFinds()
	s.decideCandidates()
	limit := s.decided
	for i := 0; s.growing > 0 && i < len(s.finds); i++ {
		if s.finds[i].grows {
			limit = min(limit, s.finds[i].end)
		}
	}
	if !s.closed {
		limit = wholeRunes(s.text, limit)
	}
	dst = s.emit(dst, limit)
	s.trim()
	return dst
}

// end appends the rest.
func (s *shapeScan) close(dst []byte) []byte {
	s.closed = true
	return s.write(dst, nil)
}

// held is how much of the text is kept back.
func (s *shapeScan) heldBytes() int {
	if s.decoded == nil {
		return len(s.text) - s.emitted
	}
	return len(s.decoded.original(s.emitted, len(s.text))) + len(s.decoded.held)
}

// written is a part of the text as it came.
func (s *shapeScan) original(from, to int) []byte {
	if s.decoded == nil {
		return s.text[from:to]
	}
	return s.decoded.original(from, to)
}

// advance decides the candidates in order.
func (s *shapeScan) decideCandidates() {
	sh, text := s.shapes, s.text
	for s.decided+minWord <= len(text) {
		i, h := s.decided, uint32(fold(text[s.decided]))|uint32(fold(text[s.decided+1]))<<8
		for ; i+minWord <= len(text); i++ { // nearly everywhere nothing begins
			h |= uint32(fold(text[i+2])) << 16
			if sh.begins[hash3(h)] != 0 {
				break
			}
			h >>= 8
		}
		s.decided = i
		if i+minWord > len(text) {
			break
		}
		n, more := markerAt(text[i:])
		switch {
		case more && !s.closed:
			return
		case n > 0:
			s.markers = append(s.markers, markerSpan{i, i + n})
			s.decided += n
		case !s.matchRules(sh.lists[sh.begins[hash3(h)]]):
			return
		default:
			s.decided++
		}
	}
	if s.closed {
		s.decided = len(text)
	}
}

// candidates decides all rules that have a word at s.at, or none.
func (s *shapeScan) matchRules(words []word) bool {
	var found [8]find
	n, rest := 0, s.text[s.decided:]
	for _, w := range words {
		if !w.isPrefixOf(rest) {
			if !s.closed && len(rest) < len(w.text) && w.hasPrefix(rest) {
				return false
			}
			continue
		}
		r := &s.shapes.rules[w.rule]
		v := r.read(s, r, w.text, s.decided)
		if v.state == needMore && !s.closed {
			return false
		}
		if v.state == matched && n < len(found) {
			found[n] = find{start: v.start, end: v.end, rule: w.rule, grows: v.grows && !s.closed, tail: v.tail}
			n++
		}
	}
	for _, f := range found[:n] {
		s.addFind(f)
	}
	return true
}

// add puts a find in its place, unless another one covers it whatever comes.
func (s *shapeScan) addFind(f find) {
	if s.decoded != nil && !s.decoded.isEscaped(max(0, f.start-lookBack), f.end) {
		return // it reads as it is written, and was judged so
	}
	if n := len(s.finds); n > 0 && !f.grows && s.finds[n-1].start < f.start && f.end <= s.finds[n-1].end {
		return
	}
	for i := 0; s.growing > 0 && i < len(s.finds); i++ {
		g := &s.finds[i]
		if g.grows && g.start < f.start && f.end <= g.end && (!f.grows || g.tail == f.tail && g.end == f.end) {
			return
		}
	}
	if f.grows {
		s.growing++
	}
	s.finds = append(s.finds, f)
	for i := len(s.finds) - 1; i > 0 && sortsAfter(&s.finds[i-1], &s.finds[i]); i-- {
		s.finds[i-1], s.finds[i] = s.finds[i], s.finds[i-1]
	}
}

// after reports whether a belongs behind b: of finds that begin together, the rule
// that is listed first gives the marker.
func sortsAfter(a, b *find) bool { return a.start > b.start || a.start == b.start && a.rule > b.rule }

// grow follows the finds whose end was not known.
func (s *shapeScan) extendFinds() {
	for i := 0; s.growing > 0 && i < len(s.finds); i++ {
		f := &s.finds[i]
		if !f.grows {
			continue
		}
		done := false
		if f.end, done = f.tail.extend(s, f.end); done || s.closed {
			f.grows = false
			s.growing--
		}
		if i < s.applied {
			s.coverEnd = max(s.coverEnd, f.end)
		}
	}
}

// show appends the text up to limit, without what is found in it.
func (s *shapeScan) emit(dst []byte, limit int) []byte {
	for s.emitted < limit {
		s.applyFinds(limit)
		stop := limit
		if len(s.markers) > 0 {
			m := s.markers[0]
			if m.start == s.emitted {
				dst = append(dst, s.original(m.start, m.end)...)
				s.emitted, s.markerEmitted, s.markers = m.end, false, s.markers[1:]
				continue
			}
			stop = min(stop, m.start)
		}
		if s.emitted < s.coverEnd {
			stop = min(stop, s.coverEnd)
			if !s.markerEmitted {
				dst = append(dst, s.shapes.rules[s.coverRule].marker...)
				s.markerEmitted = true
				s.count++
			}
		} else {
			if s.applied < len(s.finds) {
				stop = min(stop, s.finds[s.applied].start)
			}
			dst = append(dst, s.original(s.emitted, stop)...)
		}
		s.emitted = stop
	}
	s.applyFinds(limit)
	return dst
}

// look takes the finds that begin at s.shown into account, if text is to be shown
// from there, and drops those that lie behind it.
func (s *shapeScan) applyFinds(limit int) {
	for s.applied < len(s.finds) && s.finds[s.applied].start <= s.emitted && s.finds[s.applied].start < limit {
		f := &s.finds[s.applied]
		if f.start >= s.coverEnd {
			s.coverRule, s.markerEmitted = f.rule, false
		}
		s.coverEnd = max(s.coverEnd, f.end)
		s.applied++
	}
	for s.applied > 0 && !s.finds[0].grows && s.finds[0].end <= s.emitted {
		s.finds = s.finds[1:]
		s.applied--
	}
	if s.applied > compactAbove { // those behind a find that grows and grows
		kept := slices.DeleteFunc(s.finds[:s.applied], func(f find) bool { return !f.grows && f.end <= s.emitted })
		n := len(kept)
		s.finds = append(kept, s.finds[s.applied:]...)
		s.applied = n
	}
}

// forget moves text that was shown out of memory.
func (s *shapeScan) trim() {
	n := s.emitted - lookBack
	if s.closed || n < trimThreshold {
		return
	}
	if s.decoded != nil {
		s.decoded.trim(n)
	}
	s.text = append(s.text[:0], s.text[n:]...)
	s.decided, s.emitted, s.coverEnd = s.decided-n, s.emitted-n, max(s.coverEnd-n, 0)
	for i := range s.finds {
		s.finds[i].start -= n
		s.finds[i].end -= n
	}
	for i := range s.markers {
		s.markers[i].start -= n
		s.markers[i].end -= n
	}
	for i := range s.runCaches {
		s.runCaches[i].from -= n
		s.runCaches[i].to -= n
	}
}
