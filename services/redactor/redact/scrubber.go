package redact

import "bytes"

// Scrubber takes one set of secrets out of whatever it is given. It is safe
// for concurrent use and never changes. The nil Scrubber knows no secrets.
type Scrubber struct {
	known  *automaton // nil when there is nothing to find
	shapes *Shapes    // nil: without the second layer
}

// Compile builds a Scrubber. Secrets whose value is shorter than MinLength are
// ignored. Where two ids share one value, the earlier one is shown. The ids
// are assumed valid (Secret.Validate).
func Compile(secrets []Secret) *Scrubber {
	var patterns []pattern
	for _, s := range secrets {
		if len(s.Value) < MinLength {
			continue
		}
		shown := marker(s.ID)
		patterns = append(patterns,
			pattern{text: shown, with: shown, keep: true},
			// A reference must not appear verbatim either (OpenWOP envelope contract §11).
			pattern{text: "secret:" + s.ID, with: shown})
		for _, text := range forms(s.Value.Reveal()) {
			patterns = append(patterns, pattern{text: text, with: shown})
		}
	}
	if len(patterns) == 0 {
		return &Scrubber{}
	}
	a := newAutomaton(patterns)
	withhold(a, secrets)
	return &Scrubber{known: a}
}

// withhold keeps ids that contain another secret's value out of the markers.
func withhold(a *automaton, secrets []Secret) {
	leaky := map[string]bool{}
	for _, s := range secrets {
		if finds(a, s.ID) {
			leaky[marker(s.ID)] = true
		}
	}
	for i := range a.patterns {
		if p := &a.patterns[i]; leaky[p.with] {
			p.with, p.keep = marker(withheld), false
		}
	}
}

// With adds the second layer; nil: none.
func (s *Scrubber) With(shapes *Shapes) *Scrubber {
	s.shapes = shapes
	return s
}

// Knows reports whether there is anything to look for.
func (s *Scrubber) Knows() bool { return s != nil && (s.known != nil || s.shapes != nil) }

// suspects reports whether a text may hold something to take out. Behind escapes it
// may be anything.
func (s *Scrubber) suspects(text []byte) bool {
	if s.known != nil && (bytes.IndexByte(text, '\\') >= 0 || finds(s.known, text)) {
		return true
	}
	return s.shapes != nil && len(text) >= MinLength && (s.shapes.any(text) || escapesSigns(text))
}

// Text replaces every occurrence in text and tells how many there were.
func (s *Scrubber) Text(text string) (out string, count int) {
	if !s.Knows() {
		return text, 0
	}
	if out, count = s.member([]byte(text), nothing); count == 0 {
		return text, 0
	}
	return out, count
}

// member scrubs a text that is the value of a member whose name promises k. out is
// only set when something was found.
func (s *Scrubber) member(text []byte, k kind) (out string, count int) {
	if k == nothing && !s.suspects(text) {
		return "", 0
	}
	b, count := s.pass(text, k)
	if count == 0 {
		return "", 0
	}
	return string(b), count
}

// pass takes all of b through the layers.
func (s *Scrubber) pass(b []byte, k kind) (out []byte, count int) {
	out = b
	if s.known != nil {
		p := pass{a: s.known}
		out = p.end(p.feed(make([]byte, 0, len(b)), b))
		count = p.count
	}
	if s.shapes != nil {
		shown, n := s.shapes.replace(out, k)
		if n > 0 {
			out, count = shown, count+n
		}
	}
	return out, count
}

// Stream scrubs a text that arrives in pieces. It belongs to one goroutine.
type Stream struct {
	known  pass
	shapes shapeStream
}

// Stream starts a new text.
func (s *Scrubber) Stream() *Stream {
	out := &Stream{}
	if s != nil {
		out.known.a = s.known
		if s.shapes != nil {
			out.shapes = newShapeStream(s.shapes)
		}
	}
	if out.known.a == nil {
		out.known.a = newAutomaton(nil)
	}
	return out
}

// Write takes a piece and gives what may be shown of the text so far: all but
// the longest end that may be the beginning of a secret. What it gives is
// valid UTF-8 if the whole text is. count is the number of occurrences in out.
func (s *Stream) Write(piece string) (out string, count int) {
	before := s.known.count
	b := s.known.feed(nil, []byte(piece))
	b, n := s.shapes.write(b)
	return string(b), s.known.count - before + n
}

// Close gives the rest: no further piece follows.
func (s *Stream) Close() (out string, count int) {
	before := s.known.count
	b := s.known.end(nil)
	b, n := s.shapes.write(b)
	rest, more := s.shapes.close()
	return string(b) + string(rest), s.known.count - before + n + more
}

// Held is the number of bytes that are held back.
func (s *Stream) Held() int { return len(s.known.held) + s.shapes.size() }
