package redact

import "slices"

// Scrubber removes one set of secrets from texts and documents. It is safe for concurrent
// use and never changes. The nil Scrubber has no secrets.
type Scrubber struct {
	known  *knownValues // nil means no known values
	shapes *Shapes      // nil means no second layer
}

// knownValues are the automata of the known values.
type knownValues struct {
	text  *automaton            // for the text itself
	views [viewCount]*automaton // for its views
	// joined is for the text without blanks.
	joined *automaton
	// longest is the length of the longest pattern of a view.
	longest int
	// numeric means that a pattern may be in a JSON number.
	numeric bool
}

// Compile builds a Scrubber. It ignores secrets with a value shorter than MinLength. If two
// ids have the same value, the first one is shown. The ids must be valid (Secret.Validate).
func Compile(secrets []Secret) *Scrubber {
	var patterns []pattern
	var inViews [viewCount][]pattern
	var joined []pattern
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
		for _, text := range joinedEncodings(s.Value.Reveal()) {
			joined = append(joined, pattern{text: text, replacement: shown})
		}
		for which, texts := range viewEncodings(s.Value.Reveal()) {
			for _, text := range texts {
				inViews[which] = append(inViews[which], pattern{text: text, replacement: shown})
				longest = max(longest, len(text))
			}
		}
	}
	for _, s := range secrets {
		if len(s.Value) < MinLength {
			continue
		}
		for _, text := range wideEncodings(s.Value.Reveal()) {
			inViews[viewBase64] = append(inViews[viewBase64], pattern{text: text, replacement: marker(s.ID), viewOnly: true})
			longest = max(longest, len(text))
		}
	}
	if len(patterns) == 0 {
		return &Scrubber{}
	}
	k := &knownValues{text: newAutomaton(patterns), joined: newAutomaton(joined), longest: longest, numeric: slices.ContainsFunc(patterns, isNumeric)}
	for i := range k.views {
		k.views[i] = newAutomaton(inViews[i])
	}
	k.withholdLeakyIDs(secrets)
	return &Scrubber{known: k}
}

// withholdLeakyIDs removes ids that contain another secret's value from the markers.
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
	for _, a := range append(k.views[:], k.text, k.joined) {
		for i := range a.patterns {
			if p := &a.patterns[i]; leaky[p.replacement] {
				p.replacement, p.keep = marker(withheld), false
			}
		}
	}
}

// With sets the second layer; nil disables it.
func (s *Scrubber) With(shapes *Shapes) *Scrubber {
	s.shapes = shapes
	return s
}

// IsActive reports whether the scrubber has known values or a second layer.
func (s *Scrubber) IsActive() bool { return s != nil && (s.known != nil || s.shapes != nil) }

// Text replaces every secret in text and returns their number.
func (s *Scrubber) Text(text string) (out string, count int) {
	return s.text(text, newCallBudget())
}

func (s *Scrubber) text(text string, call *callBudget) (out string, count int) {
	if !s.IsActive() {
		return text, 0
	}
	if out, count = s.redactText([]byte(text), kindNone, call); count == 0 {
		return text, 0
	}
	return out, count
}

// redactText redacts a text: the value of a member of kind k, or any text with kindNone. out
// is only set if count is positive.
func (s *Scrubber) redactText(text []byte, k kind, call *callBudget) (out string, count int) {
	if s.known != nil {
		ks := newKnownScan(s.known)
		ks.call = call
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

// redactLeaf is redactText until the result is stable. A recorded document may be redacted
// again and must not change then, so the second layer reads the rest of the text again.
func (s *Scrubber) redactLeaf(text []byte, k kind, call *callBudget) (out string, count int) {
	const rounds = 4
	out, count = s.redactText(text, k, call)
	for n, i := count, 1; n > 0 && i < rounds && s.shapes != nil; i++ {
		var again []byte
		if again, n = s.shapes.replace([]byte(out), k); n > 0 {
			out, count = string(again), count+n
		}
	}
	return out, count
}

// Stream redacts a text that arrives in pieces. It is not safe for concurrent use.
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

// Write adds a piece and returns the settled text: all but the longest suffix that may be
// the start of a secret. out is valid UTF-8 if the whole text is. count is the number of
// secrets replaced in out.
func (s *Stream) Write(piece string) (out string, count int) {
	before := s.known.count
	b := s.known.write(nil, []byte(piece))
	b, n := s.shapes.write(b)
	return string(b), s.known.count - before + n
}

// Close ends the text and returns the rest.
func (s *Stream) Close() (out string, count int) {
	before := s.known.count
	b := s.known.close(nil)
	b, n := s.shapes.write(b)
	rest, more := s.shapes.close()
	return string(b) + string(rest), s.known.count - before + n + more
}

// Held returns the number of bytes that are held back.
func (s *Stream) Held() int { return len(s.known.held) + s.shapes.heldBytes() }
