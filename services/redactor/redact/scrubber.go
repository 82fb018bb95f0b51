package redact

// Scrubber takes one set of secrets out of whatever it is given. It is safe
// for concurrent use and never changes. The nil Scrubber knows no secrets.
type Scrubber struct {
	known  *knownValues // nil when there is nothing to find
	shapes *Shapes      // nil: without the second layer
}

// known are values that are known, ready to be looked for.
type knownValues struct {
	text  *automaton            // over the text as it is
	views [viewCount]*automaton // over what is made of it
	// longest is the longest text that is looked for in a view.
	longest int
}

// Compile builds a Scrubber. Secrets whose value is shorter than MinLength are
// ignored. Where two ids share one value, the earlier one is shown. The ids
// are assumed valid (Secret.Validate).
func Compile(secrets []Secret) *Scrubber {
	var patterns []pattern
	var inViews [viewCount][]pattern
	longest := 0
	for _, s := range secrets {
		if len(s.Value) < MinLength {
			continue
		}
		shown := marker(s.ID)
		patterns = append(patterns,
			pattern{text: shown, replacement: shown, keep: true},
			// A reference must not appear verbatim either (OpenWOP envelope contract §11).
			pattern{text: "secret:" + s.ID, replacement: shown})
		for _, text := range encodings(s.Value.Reveal()) {
			patterns = append(patterns, pattern{text: text, replacement: shown})
		}
		for which, texts := range viewEncodings(s.Value.Reveal()) {
			for _, text := range texts {
				inViews[which] = append(inViews[which], pattern{text: text, replacement: shown})
				longest = max(longest, len(text))
			}
		}
	}
	if len(patterns) == 0 {
		return &Scrubber{}
	}
	k := &knownValues{text: newAutomaton(patterns), longest: longest}
	for i := range k.views {
		k.views[i] = newAutomaton(inViews[i])
	}
	k.withholdLeakyIDs(secrets)
	return &Scrubber{known: k}
}

// withhold keeps ids that contain another secret's value out of the markers.
func (k *knownValues) withholdLeakyIDs(secrets []Secret) {
	leaky := map[string]bool{}
	for _, s := range secrets {
		ks := newKnownScan(k)
		if ks.scanAll([]byte(s.ID)); len(ks.matches) > 0 || ks.count > 0 {
			leaky[marker(s.ID)] = true
		}
	}
	if len(leaky) == 0 {
		return
	}
	for _, a := range append(k.views[:], k.text) {
		for i := range a.patterns {
			if p := &a.patterns[i]; leaky[p.replacement] {
				p.replacement, p.keep = marker(withheld), false
			}
		}
	}
}

// With adds the second layer; nil: none.
func (s *Scrubber) With(shapes *Shapes) *Scrubber {
	s.shapes = shapes
	return s
}

// Knows reports whether there is anything to look for.
func (s *Scrubber) IsActive() bool { return s != nil && (s.known != nil || s.shapes != nil) }

// Text replaces every occurrence in text and tells how many there were.
func (s *Scrubber) Text(text string) (out string, count int) {
	if !s.IsActive() {
		return text, 0
	}
	if out, count = s.redactText([]byte(text), kindNone); count == 0 {
		return text, 0
	}
	return out, count
}

// member scrubs a text that is the value of a member whose name promises k. out is
// only set when something was found.
func (s *Scrubber) redactText(text []byte, k kind) (out string, count int) {
	if s.known != nil {
		ks := newKnownScan(s.known)
		text = ks.scanAll(text)
		count = ks.count
	}
	if s.shapes != nil && len(text) >= MinLength && (k != kindNone || s.shapes.containsWord(text) || hasUnicodeEscapes(text)) {
		shown, n := s.shapes.replace(text, k)
		if n > 0 {
			text, count = shown, count+n
		}
	}
	if count == 0 {
		return "", 0
	}
	return string(text), count
}

// leaf is member for what is recorded: it may be redacted again, and must not change
// then. What is left of a text is judged anew, without what was found in it.
func (s *Scrubber) redactLeaf(text []byte, k kind) (out string, count int) {
	const rounds = 4
	out, count = s.redactText(text, k)
	for n, i := count, 1; n > 0 && i < rounds && s.shapes != nil; i++ {
		var again []byte
		if again, n = s.shapes.replace([]byte(out), k); n > 0 {
			out, count = string(again), count+n
		}
	}
	return out, count
}

// Stream scrubs a text that arrives in pieces. It belongs to one goroutine.
type Stream struct {
	known  *knownScan
	shapes shapeStream
}

// Stream starts a new text.
func (s *Scrubber) Stream() *Stream {
	out := &Stream{}
	var k *knownValues
	if s != nil {
		k = s.known
		if s.shapes != nil {
			out.shapes = newShapeStream(s.shapes)
		}
	}
	if k == nil {
		k = &knownValues{text: newAutomaton(nil)}
		for i := range k.views {
			k.views[i] = k.text
		}
	}
	out.known = newKnownScan(k)
	return out
}

// Write takes a piece and gives what may be shown of the text so far: all but
// the longest end that may be the beginning of a secret. What it gives is
// valid UTF-8 if the whole text is. count is the number of occurrences in out.
func (s *Stream) Write(piece string) (out string, count int) {
	before := s.known.count
	b := s.known.write(nil, []byte(piece))
	b, n := s.shapes.write(b)
	return string(b), s.known.count - before + n
}

// Close gives the rest: no further piece follows.
func (s *Stream) Close() (out string, count int) {
	before := s.known.count
	b := s.known.close(nil)
	b, n := s.shapes.write(b)
	rest, more := s.shapes.close()
	return string(b) + string(rest), s.known.count - before + n + more
}

// Held is the number of bytes that are held back.
func (s *Stream) Held() int { return len(s.known.held) + s.shapes.heldBytes() }
