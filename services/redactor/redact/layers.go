package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// Encoders are applied one after the other: base64 of base64, base32 of hex, hex of a query. In a
// whole text searchLayers undoes base64, base32 and hex, and searches the result like a text, again
// with searchLayers. A stream is not searched like that: its pieces could not be shown before a word
// ends.

const (
	// maxLayers limits how many layers are undone. The automaton has patterns for one more layer of
	// base64 and hex.
	maxLayers = 3
	// minRun is the length of the shortest run of characters that is decoded: base64 of a shorter
	// value is a pattern.
	minRun = 12
)

// layerBudget limits the work on layers of one text. Encoders stay far below it.
type layerBudget struct {
	// decode is how many characters the layers below the first one may decode.
	decode int
	// inflate is how many bytes compressed parts may have, in addition to what the call has left.
	inflate int
	call    *callBudget
}

// layers returns the budget of the text.
func (ks *knownScan) layers() *layerBudget {
	const times = 8
	if ks.budget == nil {
		if ks.call == nil {
			ks.call = newCallBudget()
		}
		ks.budget = &layerBudget{decode: times * len(ks.held), inflate: times * len(ks.held), call: ks.call}
	}
	return ks.budget
}

// callBudget limits the work on all texts of a call.
type callBudget struct {
	// inflate is how many bytes compressed parts may have that their texts have no budget for.
	inflate int
	// stopped reports that the caller has given up; nil never.
	stopped func() bool
}

func newCallBudget() *callBudget { return &callBudget{inflate: maxInflated} }

func (c *callBudget) isStopped() bool { return c != nil && c.stopped != nil && c.stopped() }

// codec is an encoding whose characters stand for a number of bits each.
type codec struct {
	bits   int
	digits [256]int8 // of each character; negative for others
	// shortest is the length of the shortest run that is decoded.
	shortest int
}

func newCodec(bits, shortest int, alphabets ...string) *codec {
	c := &codec{bits: bits, shortest: shortest}
	for i := range c.digits {
		c.digits[i] = -1
	}
	for _, alphabet := range alphabets {
		for i := range len(alphabet) {
			c.digits[alphabet[i]] = int8(i) //nolint:gosec // G115: at most 63
		}
	}
	return c
}

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// codecs are the encodings that are undone. The first one has all characters of the others.
var codecs = [...]*codec{
	newCodec(6, minRun, upperLetters+lowerLetters+"0123456789+/", upperLetters+lowerLetters+"0123456789-_"),
	newCodec(5, 13, upperLetters+"234567"),
	newCodec(5, 13, lowerLetters+"234567"),
	newCodec(4, 2*MinLength, "0123456789abcdef", "0123456789ABCDEF"),
}

// phases is the number of ways in which bytes can be aligned to characters.
func (c *codec) phases() int {
	n := 1
	for n*c.bits%8 != 0 {
		n++
	}
	return n
}

// decode appends what characters stand for.
func (c *codec) decode(dst, chars []byte) []byte {
	held, bits := uint32(0), 0
	for _, char := range chars {
		held = held<<c.bits | uint32(c.digits[char]) //nolint:gosec // G115: chars are of the alphabet
		if bits += c.bits; bits >= 8 {
			bits -= 8
			dst = append(dst, byte(held>>bits)) //nolint:gosec // G115: the low eight bits are meant
		}
	}
	return dst
}

// encodedRun are adjacent characters of base64.
type encodedRun struct {
	chars []byte
	// first is the position of the first character.
	first int
	// lines are the contiguous characters after the first ones.
	lines []encodedLine
}

// encodedLine are contiguous characters of a run, from the one with an index, at a position.
type encodedLine struct{ index, position int }

func (r *encodedRun) position(i int) int {
	if n := len(r.lines); n > 0 && i >= r.lines[n-1].index { // as for a character that is added
		return r.lines[n-1].position + i - r.lines[n-1].index
	}
	n, found := slices.BinarySearchFunc(r.lines, i, func(l encodedLine, i int) int { return cmp.Compare(l.index, i) })
	if !found {
		n--
	}
	if n < 0 {
		return r.first + i
	}
	return r.lines[n].position + i - r.lines[n].index
}

// end returns the position behind character i-1.
func (r *encodedRun) end(i int) int { return r.position(i-1) + 1 }

func isRunChar(c byte) bool { return codecs[0].digits[c] >= 0 }

// searchLayers records the matches in the decoded runs of a whole text.
func (ks *knownScan) searchLayers(text []byte) {
	var run encodedRun
	for i := minRun - 1; i < len(text); i += minRun {
		if !isRunChar(text[i]) {
			continue
		}
		start := i
		for start > 0 && isRunChar(text[start-1]) {
			start--
		}
		i = run.read(text, start)
		if len(run.chars) >= minRun {
			ks.searchRun(&run)
		}
	}
}

// read reads the run that starts at i, and returns its end. Line breaks within it do not matter, nor
// escapes of its characters in JSON and URLs.
func (r *encodedRun) read(text []byte, i int) (end int) {
	r.first, r.lines = i, r.lines[:0]
	line := i
	for ; i < len(text) && isRunChar(text[i]); i++ {
	}
	r.chars = text[r.first:i:i]
	for i < len(text) {
		next := i
		switch text[i] {
		case '\n', '\r', '\\':
			next = skipLineBreak(text, i, i-line)
			if next > i {
				line = next
			}
		case '%':
			if i+3 <= len(text) && (text[i+2]|0x20 == 'b' || text[i+2]|0x20 == 'f') && text[i+1] == '2' {
				r.add('+'+(text[i+2]&4), i) // %2B, or %2F
				i += 3
				continue
			}
		}
		if next == i && !isRunChar(text[i]) {
			break
		}
		for i = next; i < len(text) && isRunChar(text[i]); i++ {
			r.add(text[i], i)
		}
	}
	return i
}

// add adds a character.
func (r *encodedRun) add(c byte, at int) {
	if n := len(r.chars); r.position(n) != at {
		r.lines = append(r.lines, encodedLine{index: n, position: at})
	}
	r.chars = append(r.chars, c)
}

// skipLineBreak returns where a run goes on after a line break at i, or after backslashes before a
// slash. line is the length of the line so far. It returns i if the run ends.
func skipLineBreak(text []byte, i, line int) int {
	k := i
	for k < len(text) {
		if c := text[k]; c == '\n' || c == '\r' {
			k++
			continue
		}
		n := k
		for n < len(text) && text[n] == '\\' {
			n++
		}
		if n == k || n == len(text) {
			break
		}
		if text[n] == '/' && k == i {
			return n
		}
		if text[n] != 'n' && text[n] != 'r' {
			break
		}
		k = n + 1
	}
	if k == i || line < minLineLength {
		return i
	}
	for k < len(text) && isBetweenLines(text[k]) {
		k++
	}
	if k < len(text) && isRunChar(text[k]) {
		return k
	}
	return i
}

// searchRun decodes a run in all ways.
func (ks *knownScan) searchRun(run *encodedRun) {
	if ks.layers().call.isStopped() {
		return
	}
	ks.searchDigits(codecs[0], run, 0, len(run.chars))
	for _, c := range codecs[1:] {
		for from := 0; from < len(run.chars); from++ {
			to := from
			for to < len(run.chars) && c.digits[run.chars[to]] >= 0 {
				to++
			}
			if to-from >= c.shortest {
				ks.searchDigits(c, run, from, to)
			}
			from = to
		}
	}
}

// searchDigits decodes the characters from..to of a run, in each alignment.
func (ks *knownScan) searchDigits(c *codec, run *encodedRun, from, to int) {
	for phase := range c.phases() {
		chars := run.chars[min(from+phase, to):to]
		if ks.layer > 0 {
			if ks.budget.decode -= len(chars); ks.budget.decode < 0 {
				return
			}
		}
		ks.decoded = c.decode(ks.decoded[:0], chars)
		if phase == 0 {
			ks.searchCompressed(ks.decoded, knownMatch{start: run.position(from), end: run.end(to)})
		}
		for i := 0; i < len(ks.decoded); i++ {
			n := textLength(ks.decoded[i:])
			if n >= MinLength {
				ks.searchSegment(c, run, from+phase, i, i+n)
			}
			i += n
		}
	}
}

// searchSegment searches the decoded bytes start..end, of characters from the one at first.
func (ks *knownScan) searchSegment(c *codec, run *encodedRun, first, start, end int) {
	for _, m := range ks.searchWithin(ks.decoded[start:end]) {
		from, to := first+(start+m.start)*8/c.bits, first+((start+m.end)*8+c.bits-1)/c.bits
		found := layeredMatch{knownMatch: knownMatch{start: run.position(from), end: run.end(to), pattern: m.pattern}}
		found.coreStart, found.coreEnd = run.position(from+1), run.end(to-1)
		ks.layered = append(ks.layered, found)
	}
}

// layeredMatch is a match below a layer. The first and the last character also stand for bits of its
// neighbours, so patterns do not have them; coreStart and coreEnd are without these.
type layeredMatch struct {
	knownMatch

	coreStart, coreEnd int
}

// addLayered adds the matches below layers to those of the text itself, which a stream has as well and
// which are preferred.
func (ks *knownScan) addLayered() {
	if len(ks.layered) == 0 {
		return
	}
	var covered []knownMatch // disjoint and sorted
	slices.SortStableFunc(ks.matches, compareMatches)
	for _, m := range ks.matches {
		if n := len(covered); n > 0 && m.start <= covered[n-1].end {
			covered[n-1].end = max(covered[n-1].end, m.end)
			continue
		}
		covered = append(covered, m)
	}
	for _, m := range ks.layered {
		i, _ := slices.BinarySearchFunc(covered, m.coreEnd, func(c knownMatch, end int) int { return cmp.Compare(c.end, end) })
		if i == len(covered) || covered[i].start > m.coreStart {
			ks.matches = append(ks.matches, m.knownMatch)
		}
	}
}

// searchWithin returns the matches in a text that was decoded from a part of this one.
func (ks *knownScan) searchWithin(text []byte) []knownMatch {
	in := newKnownScan(ks.known)
	in.layer, in.budget = ks.layer+1, ks.layers()
	in.search(text)
	return slices.DeleteFunc(in.matches, func(m knownMatch) bool { return m.pattern.keep })
}

// addWhole adds a match below a layer whose first and last characters are of the value alone.
func (ks *knownScan) addWhole(m knownMatch) {
	ks.layered = append(ks.layered, layeredMatch{knownMatch: m, coreStart: m.start, coreEnd: m.end})
}

// textLength returns how many bytes at the start look like a text: of ASCII, or of UTF-16.
func textLength(b []byte) int {
	for i, c := range b {
		if c > '~' || c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0 {
			return i
		}
	}
	return len(b)
}

// rewriting is a change of a text: it returns how many bytes at i stand for out, or for nothing.
type rewriting func(text []byte, i int) (n int, out byte, ok bool)

// searchRewritten records the matches in a text after a change.
func (ks *knownScan) searchRewritten(text []byte, change rewriting, search func([]byte) []knownMatch) {
	changed := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		n, c, ok := change(text, i)
		if ok {
			changed = append(changed, c)
		}
		i += n
	}
	if len(changed) == len(text) {
		return
	}
	found := search(changed)
	if len(found) == 0 {
		return
	}
	at := make([]int, 0, len(changed)) // where its characters are in the text
	for i := 0; i < len(text); {
		n, _, ok := change(text, i)
		if ok {
			at = append(at, i)
		}
		i += n
	}
	for _, m := range found {
		last := at[m.end-1]
		n, _, _ := change(text, last)
		ks.addWhole(knownMatch{start: at[m.start], end: last + n, pattern: m.pattern})
	}
}

// searchQuotedPrintable records the matches in a text with soft line breaks, and =41, undone (RFC 2045
// §6.7). An equals sign before two digits may also be one, so each is undone by itself, too.
func (ks *knownScan) searchQuotedPrintable(text []byte) {
	breaks, escapes := false, false
	for i := bytes.IndexByte(text, '='); i >= 0 && (!breaks || !escapes); {
		n, _, ok := unquotePrintable(text, i)
		breaks, escapes = breaks || !ok, escapes || ok && n > 1
		next := bytes.IndexByte(text[i+1:], '=')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if breaks {
		ks.searchRewritten(text, dropSoftBreak, ks.searchWithin)
	}
	if escapes {
		ks.searchRewritten(text, unquotePrintable, ks.searchWithin)
	}
}

// unquotePrintable decodes the character at text[i].
func unquotePrintable(text []byte, i int) (n int, out byte, ok bool) {
	if n, out, ok = dropSoftBreak(text, i); !ok || out != '=' {
		return n, out, ok
	}
	if r, ok, _ := readHex(text, i+1, 2); ok {
		return 3, byte(r), true //nolint:gosec // G115: two digits
	}
	return 1, '=', true
}

// dropSoftBreak drops an equals sign at the end of a line, with the line break.
func dropSoftBreak(text []byte, i int) (n int, out byte, ok bool) {
	if text[i] != '=' {
		return 1, text[i], true
	}
	k := i + 1
	for k < len(text) && (text[k] == ' ' || text[k] == '\t') {
		k++
	}
	if k < len(text) && text[k] == '\r' {
		k++
	}
	if k < len(text) && text[k] == '\n' {
		return k + 1 - i, 0, false
	}
	return 1, '=', true
}

// searchJoined records the values that blanks or line breaks split, as in text that a terminal has
// wrapped.
func (ks *knownScan) searchJoined(text []byte) {
	if len(ks.known.joined.patterns) == 0 {
		return
	}
	ks.searchRewritten(text, dropBlank, func(joined []byte) []knownMatch {
		in := &knownScan{known: &knownValues{text: ks.known.joined}}
		in.runAutomaton(joined)
		return in.matches
	})
}

func dropBlank(text []byte, i int) (n int, out byte, ok bool) { return 1, text[i], !isSpace(text[i]) }

// joinedEncodings returns the pattern of a value without blanks, if it is unlike words: a digit, and
// enough characters that no other text has them in a row.
func joinedEncodings(v string) []string {
	const shortest = 12
	bare := string(slices.DeleteFunc([]byte(v), isSpace))
	if len(v) > maxEncoded || len(bare) < shortest || !bytes.ContainsAny([]byte(bare), "0123456789") {
		return nil
	}
	return []string{bare}
}
