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
type scan struct {
	shapes  *Shapes
	view    *decoded // nil: the text is read as it is
	text    []byte
	closed  bool // no more text follows
	at      int  // candidates before it are decided
	shown   int  // text before it was given out or taken out
	cover   int  // finds that begin before shown reach up to here
	rule    int  // whose marker stands for what is covered
	marked  bool // and whether it is there already
	count   int
	finds   []find
	seen    int // so many of them have their place in cover
	growing int // so many of them have no end yet
	marks   []mark
	runs    []reach
	buf     [sampleSize]byte
}

// find is a part of the text that a rule takes out.
type find struct {
	start, end, rule int
	grows            bool // end is not known yet
	tail             tail
}

// mark is a marker that was in the text already.
type mark struct{ start, end int }

// Bounds of a scan, in bytes.
const (
	// lookBack is how much shown text a reader may look at.
	lookBack = 96
	// manySeen is how many finds are looked through for those that are over.
	manySeen = 32
	// slack is how much shown text may stay in memory before it is moved out.
	slack = 4096
)

func newScan(s *Shapes) *scan { return &scan{shapes: s, runs: make([]reach, len(s.classes))} }

// write takes a piece and appends to dst what is settled.
func (s *scan) write(dst, piece []byte) []byte {
	if s.view == nil {
		s.text = append(s.text, piece...)
	} else {
		s.text = s.view.read(s.text, piece, s.closed)
	}
	s.grow()
	s.advance()
	limit := s.at
	for i := 0; s.growing > 0 && i < len(s.finds); i++ {
		if s.finds[i].grows {
			limit = min(limit, s.finds[i].end)
		}
	}
	if !s.closed {
		limit = wholeRunes(s.text, limit)
	}
	dst = s.show(dst, limit)
	s.forget()
	return dst
}

// end appends the rest.
func (s *scan) end(dst []byte) []byte {
	s.closed = true
	return s.write(dst, nil)
}

// held is how much of the text is kept back.
func (s *scan) held() int {
	if s.view == nil {
		return len(s.text) - s.shown
	}
	return len(s.view.written(s.shown, len(s.text))) + len(s.view.held)
}

// written is a part of the text as it came.
func (s *scan) written(from, to int) []byte {
	if s.view == nil {
		return s.text[from:to]
	}
	return s.view.written(from, to)
}

// advance decides the candidates in order.
func (s *scan) advance() {
	sh, text := s.shapes, s.text
	for s.at+minWord <= len(text) {
		i, h := s.at, uint32(fold(text[s.at]))|uint32(fold(text[s.at+1]))<<8
		for ; i+minWord <= len(text); i++ { // nearly everywhere nothing begins
			h |= uint32(fold(text[i+2])) << 16
			if sh.begins[hash3(h)] != 0 {
				break
			}
			h >>= 8
		}
		s.at = i
		if i+minWord > len(text) {
			break
		}
		n, more := markerAt(text[i:])
		switch {
		case more && !s.closed:
			return
		case n > 0:
			s.marks = append(s.marks, mark{i, i + n})
			s.at += n
		case !s.candidates(sh.lists[sh.begins[hash3(h)]]):
			return
		default:
			s.at++
		}
	}
	if s.closed {
		s.at = len(text)
	}
}

// candidates decides all rules that have a word at s.at, or none.
func (s *scan) candidates(words []word) bool {
	var found [8]find
	n, rest := 0, s.text[s.at:]
	for _, w := range words {
		if !w.at(rest) {
			if !s.closed && len(rest) < len(w.text) && w.begins(rest) {
				return false
			}
			continue
		}
		r := &s.shapes.rules[w.rule]
		v := r.read(s, r, w.text, s.at)
		if v.state == more && !s.closed {
			return false
		}
		if v.state == yes && n < len(found) {
			found[n] = find{start: v.start, end: v.end, rule: w.rule, grows: v.grows && !s.closed, tail: v.tail}
			n++
		}
	}
	for _, f := range found[:n] {
		s.add(f)
	}
	return true
}

// add puts a find in its place, unless another one covers it whatever comes.
func (s *scan) add(f find) {
	if s.view != nil && !s.view.escaped(max(0, f.start-lookBack), f.end) {
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
	for i := len(s.finds) - 1; i > 0 && after(&s.finds[i-1], &s.finds[i]); i-- {
		s.finds[i-1], s.finds[i] = s.finds[i], s.finds[i-1]
	}
}

// after reports whether a belongs behind b: of finds that begin together, the rule
// that is listed first gives the marker.
func after(a, b *find) bool { return a.start > b.start || a.start == b.start && a.rule > b.rule }

// grow follows the finds whose end was not known.
func (s *scan) grow() {
	for i := 0; s.growing > 0 && i < len(s.finds); i++ {
		f := &s.finds[i]
		if !f.grows {
			continue
		}
		done := false
		if f.end, done = f.tail.follow(s, f.end); done || s.closed {
			f.grows = false
			s.growing--
		}
		if i < s.seen {
			s.cover = max(s.cover, f.end)
		}
	}
}

// show appends the text up to limit, without what is found in it.
func (s *scan) show(dst []byte, limit int) []byte {
	for s.shown < limit {
		s.look(limit)
		stop := limit
		if len(s.marks) > 0 {
			m := s.marks[0]
			if m.start == s.shown {
				dst = append(dst, s.written(m.start, m.end)...)
				s.shown, s.marked, s.marks = m.end, false, s.marks[1:]
				continue
			}
			stop = min(stop, m.start)
		}
		if s.shown < s.cover {
			stop = min(stop, s.cover)
			if !s.marked {
				dst = append(dst, s.shapes.rules[s.rule].with...)
				s.marked = true
				s.count++
			}
		} else {
			if s.seen < len(s.finds) {
				stop = min(stop, s.finds[s.seen].start)
			}
			dst = append(dst, s.written(s.shown, stop)...)
		}
		s.shown = stop
	}
	s.look(limit)
	return dst
}

// look takes the finds that begin at s.shown into account, if text is to be shown
// from there, and drops those that lie behind it.
func (s *scan) look(limit int) {
	for s.seen < len(s.finds) && s.finds[s.seen].start <= s.shown && s.finds[s.seen].start < limit {
		f := &s.finds[s.seen]
		if f.start >= s.cover {
			s.rule, s.marked = f.rule, false
		}
		s.cover = max(s.cover, f.end)
		s.seen++
	}
	for s.seen > 0 && !s.finds[0].grows && s.finds[0].end <= s.shown {
		s.finds = s.finds[1:]
		s.seen--
	}
	if s.seen > manySeen { // those behind a find that grows and grows
		kept := slices.DeleteFunc(s.finds[:s.seen], func(f find) bool { return !f.grows && f.end <= s.shown })
		n := len(kept)
		s.finds = append(kept, s.finds[s.seen:]...)
		s.seen = n
	}
}

// forget moves text that was shown out of memory.
func (s *scan) forget() {
	n := s.shown - lookBack
	if s.closed || n < slack {
		return
	}
	if s.view != nil {
		s.view.forget(n)
	}
	s.text = append(s.text[:0], s.text[n:]...)
	s.at, s.shown, s.cover = s.at-n, s.shown-n, max(s.cover-n, 0)
	for i := range s.finds {
		s.finds[i].start -= n
		s.finds[i].end -= n
	}
	for i := range s.marks {
		s.marks[i].start -= n
		s.marks[i].end -= n
	}
	for i := range s.runs {
		s.runs[i].from -= n
		s.runs[i].to -= n
	}
}
