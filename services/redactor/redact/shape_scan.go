package redact

import "slices"

// shapeScan is the second layer for one text. The text may be written in pieces. The
// result does not depend on where it is cut.
//
// Every start of a rule's word is a candidate. Candidates are decided in order. A
// candidate that needs more text stops the scan, and nothing after it is emitted. Each
// rule limits how much text it needs. A find may still grow after its decision. The bytes
// that it covers are dropped as they arrive, and need not be held.
//
// Finds may overlap. All text that a find covers is removed. Overlapping finds share the
// marker of the first one.
type shapeScan struct {
	shapes        *Shapes
	decoded       *decodedText // nil means the text is not decoded
	text          []byte
	closed        bool // no more text follows
	decided       int  // candidates before it are decided
	emitted       int  // text before it was emitted or dropped
	coverEnd      int  // end of the finds that start before emitted
	coverRule     int  // whose marker replaces the covered text
	markerEmitted bool // that marker was emitted
	count         int
	finds         []find
	applied       int // number of finds that are included in coverEnd
	growing       int // number of finds that still grow
	markers       []markerSpan
	runCaches     []runCache
	sampleBuf     [sampleSize]byte
}

// find is a part of the text that a rule removes.
type find struct {
	start, end, rule int
	grows            bool // end is not known yet
	tail             tail
}

// markerSpan is a marker that the text contains.
type markerSpan struct{ start, end int }

// Limits of a scan.
const (
	// lookBack is how many emitted bytes a reader may read.
	lookBack = 96
	// compactAbove is the number of applied finds above which ended ones are removed.
	compactAbove = 32
	// trimThreshold is how many emitted bytes may stay in memory before they are removed.
	trimThreshold = 4096
)

func newShapeScan(s *Shapes) *shapeScan {
	return &shapeScan{shapes: s, runCaches: make([]runCache, len(s.classes))}
}

// write adds a piece and appends the settled text to dst.
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

// close appends the rest of the text.
func (s *shapeScan) close(dst []byte) []byte {
	s.closed = true
	return s.write(dst, nil)
}

// heldBytes returns how many bytes of the text are held back.
func (s *shapeScan) heldBytes() int {
	if s.decoded == nil {
		return len(s.text) - s.emitted
	}
	return len(s.decoded.original(s.emitted, len(s.text))) + len(s.decoded.held)
}

// original returns a part of the text as it was written.
func (s *shapeScan) original(from, to int) []byte {
	if s.decoded == nil {
		return s.text[from:to]
	}
	return s.decoded.original(from, to)
}

// decideCandidates decides the candidates in order.
func (s *shapeScan) decideCandidates() {
	sh, text := s.shapes, s.text
	for s.decided+minWord <= len(text) {
		i, h := s.decided, uint32(fold(text[s.decided]))|uint32(fold(text[s.decided+1]))<<8
		for ; i+minWord <= len(text); i++ { // at most places no word starts
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

// matchRules decides all rules with a word at s.decided. It returns false, without a
// decision, if one of them needs more text.
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

// addFind inserts a find in order, unless another find will cover it in any case.
func (s *shapeScan) addFind(f find) {
	if s.decoded != nil && !s.decoded.isEscaped(max(0, f.start-lookBack), f.end) {
		return // it has no escape, so the scan of the undecoded text has decided it
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

// sortsAfter reports whether a sorts after b. Of finds with the same start, the rule that
// is listed first determines the marker.
func sortsAfter(a, b *find) bool { return a.start > b.start || a.start == b.start && a.rule > b.rule }

// extendFinds extends the finds that still grow.
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

// emit appends the text up to limit, with finds replaced.
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

// applyFinds includes the finds that start at s.emitted in coverEnd, if text follows, and
// removes finds that end before it.
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
	if s.applied > compactAbove { // ended finds after one that still grows
		kept := slices.DeleteFunc(s.finds[:s.applied], func(f find) bool { return !f.grows && f.end <= s.emitted })
		n := len(kept)
		s.finds = append(kept, s.finds[s.applied:]...)
		s.applied = n
	}
}

// trim removes emitted text from memory.
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
