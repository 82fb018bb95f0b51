package redact

import "bytes"

// The views of a text that are searched for known values, in addition to the text itself.
const (
	viewUnescaped = iota // escapes undone
	viewBase64           // and line breaks in base64 removed
	viewHex              // and letters in lower case
	viewCount
)

// minLineLength is the shortest line of base64 or hex whose line break is removed.
const minLineLength = 12

// minMixedHex is the shortest hex in mixed case that is searched in viewHex: MinLength bytes.
const minMixedHex = 2 * MinLength

// viewSet are the views of one text: the changes of encoders are undone. A value is found
// where its plain text, its base64 or its hex is in a view.
type viewSet struct {
	known       *knownValues
	next        int  // position of the first byte that was not read yet
	runLength   int  // length of the run of base64 characters before it
	inLineBreak bool // in a line break that is removed
	join        int  // the state of a join of two pieces
	dump        hexDump
	// nested is an incomplete escape whose first character was escaped itself.
	nested  []sourceByte
	view    [viewCount]view
	written []sourceByte // buffer for an escape as written
}

// sourceByte is a byte of a view, and its position in the text.
type sourceByte struct {
	value      byte
	start, end int
}

// reset restarts the views at a position.
func (v *viewSet) reset(next int) {
	v.next, v.runLength, v.inLineBreak, v.join, v.dump, v.nested = next, 0, false, noJoin, hexDump{}, v.nested[:0]
	for i := range v.view {
		v.view[i].reset()
	}
}

// readChar reads the next character of the text. It returns false if the text may end in an
// incomplete escape.
func (v *viewSet) readChar(ks *knownScan, closed bool) bool {
	i := v.next - ks.base
	c := ks.held[i]
	read := undisguise
	if isEscape(c) {
		read = unescapeAt
	}
	n, out, m, more := read(ks.held, i)
	if more && !closed {
		return false
	}
	switch {
	case len(v.nested) == 0 && !isEscape(c):
		for _, c := range out[:m] {
			if c != '\\' { // a wide one; the views have none
				v.feedViews(ks, c, v.next, v.next+n)
			}
		}
	case len(v.nested) == 0 && (m != 1 || !isEscape(out[0])):
		v.feedEscape(ks, nil, out[:m], v.next, v.next+n)
	default:
		for _, c := range out[:m] { // it may start another escape
			v.nested = append(v.nested, sourceByte{c, v.next, v.next + n})
		}
		v.resolveNested(ks, false)
	}
	v.next += n
	return true
}

// resolveNested decodes the nested escape when it is complete.
func (v *viewSet) resolveNested(ks *knownScan, closed bool) {
	for len(v.nested) > 0 {
		var held [maxNested]byte
		text := held[:0]
		for _, c := range v.nested[:min(len(v.nested), maxNested)] {
			text = append(text, c.value)
		}
		n, out, m, more := unescapeAt(text, 0)
		if more && !closed && len(v.nested) < maxNested {
			return
		}
		read := out[:m]
		if n == 1 && !isEscape(text[0]) { // all bytes of one character
			for n < len(text) && v.nested[n].start == v.nested[0].start && !isEscape(text[n]) {
				n++
			}
			read = text[:n]
		}
		v.feedEscape(ks, v.nested[:n], read, v.nested[0].start, v.nested[n-1].end)
		v.nested = append(v.nested[:0], v.nested[n:]...)
	}
}

// maxNested limits the length of an escape whose first character was escaped.
const maxNested = 64

// feedViews feeds one unescaped byte, with its position, to the views.
func (v *viewSet) feedViews(ks *knownScan, c byte, start, end int) {
	if c == 0 { // half a character of UTF-16
		return
	}
	v.feedView(ks, viewUnescaped, c, start, end)
	if v.joins(ks, c, start) {
		return
	}
	switch {
	case c == '\n' || c == '\r':
		if v.inLineBreak || v.runLength >= minLineLength {
			v.inLineBreak = true
			return
		}
	case v.inLineBreak && isBetweenLines(c):
		return
	}
	v.inLineBreak = false
	if isBase64(c) || c == '-' || c == '_' {
		v.runLength++
	} else {
		v.runLength = 0
	}
	v.feedView(ks, viewBase64, c, start, end)
	v.feedHex(ks, sourceByte{fold(c), start, end})
}

// isBetweenLines reports a character that may stand between two lines of base64: blanks, and the
// marks of quoted mail, comments and lists.
func isBetweenLines(c byte) bool {
	return c == ' ' || c == '\t' || c == '>' || c == '|' || c == '#' || c == '*'
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// The states of a join: base64 in pieces of source code, as in "QUJD" + "REVG".
const (
	noJoin    = iota
	afterText // behind the quote that ends a piece
	afterPlus // behind the operator
)

// joins removes what joins two pieces of base64 from the views. It returns false for any other
// character.
func (v *viewSet) joins(ks *knownScan, c byte, start int) bool {
	switch {
	case v.join == noJoin:
		if isQuote(c) && v.runLength >= minLineLength {
			v.join = afterText
			return true
		}
		return false
	case isSpace(c):
		return true
	case c == '+' && v.join == afterText:
		v.join = afterPlus
		return true
	case isQuote(c) && v.join == afterPlus:
		v.join = noJoin
		return true
	}
	// There is no other piece, so what was read ends at the quote.
	v.join, v.runLength, v.inLineBreak = noJoin, 0, false
	v.feedView(ks, viewBase64, '"', start, start)
	v.feedView(ks, viewHex, '"', start, start)
	return false
}

// pendingFrom returns the position from which the text may still become a match.
func (v *viewSet) pendingFrom() int {
	out := v.next
	if len(v.nested) > 0 {
		out = v.nested[0].start
	}
	if v.dump.zero.value != 0 {
		out = min(out, v.dump.zero.start)
	}
	for i := range v.view {
		out = min(out, v.view[i].pendingFrom(v.known.views[i], out))
	}
	return out
}

func hasMixedCase(text []byte) bool {
	upper, lower := false, false
	for _, c := range text {
		upper = upper || isUpper(c)
		lower = lower || c >= 'a' && c <= 'z'
	}
	return upper && lower
}

// scanAll searches all of ks.held. The views differ from the text only near escapes, line
// breaks of base64, and hex in mixed case, so only these parts are read.
func (v *viewSet) scanAll(ks *knownScan) {
	text, reach := ks.held, max(v.known.longest, minLineLength)
	at, stop := v.findTrigger(text, 0)
	for at >= 0 {
		if at-reach > v.next || v.next == 0 {
			v.reset(max(0, at-reach))
		}
		// A match may have this many plain bytes before or after the trigger.
		for left := at - v.next + reach; v.next < len(text) && (left > 0 || v.pendingFrom() < v.next); left-- {
			from := v.next
			v.readChar(ks, true)
			if from < stop || isEscape(text[from]) || v.inLineBreak {
				left = reach
			}
		}
		if v.next == len(text) {
			v.resolveNested(ks, true)
		}
		at, stop = v.findTrigger(text, v.next)
	}
}

// triggerWindow is how many bytes findTrigger searches at a time.
const triggerWindow = 4096

// findTrigger returns the first place at or after i where a view differs from the text, and
// the end of that place.
func (v *viewSet) findTrigger(text []byte, i int) (at, end int) {
	for ; i < len(text); i += triggerWindow {
		rest := text[i:min(i+triggerWindow, len(text))]
		at := -1
		for _, c := range []byte{'\\', '%', '&', escapeChar} {
			if n := bytes.IndexByte(rest, c); n >= 0 {
				rest, at = rest[:n], i+n
			}
		}
		for _, c := range []byte{'\n', '\r'} {
			for from := 0; from < len(rest); from++ {
				n := bytes.IndexByte(rest[from:], c)
				if n < 0 {
					break
				}
				if from += n; endsBase64Line(text, i+from) {
					rest, at = rest[:from], i+from
				}
			}
		}
		if n := findDisguise(rest); n >= 0 {
			rest, at = rest[:n], i+n
		}
		if n := findJoin(text, i, i+len(rest)); n >= 0 {
			rest, at = rest[:n-i], n
		}
		if n := findUTF16(text, i, i+len(rest)); n >= 0 {
			rest, at = rest[:n-i], n
		}
		if n := findDump(text, i, i+len(rest)); n >= 0 {
			rest, at = rest[:n-i], n
		}
		if at, end = findMixedHex(text, i, i+len(rest), at); at >= 0 {
			return at, end
		}
	}
	return -1, 0
}

// findJoin returns the first quote between from and to that ends a piece of base64 and is followed
// by an operator that joins strings; -1 if there is none.
func findJoin(text []byte, from, to int) int {
	for i := from; i < to; i++ {
		n := bytes.IndexByte(text[i:to], '+')
		if n < 0 {
			return -1
		}
		i += n
		k := i - 1
		for k > 0 && isSpace(text[k]) {
			k--
		}
		if k >= from && isQuote(text[k]) && endsBase64Line(text, k) {
			return k
		}
	}
	return -1
}

// findUTF16 returns the first place between from and to with base64 of UTF-16; -1 if there is none.
// Six bytes of it are eight characters. Of ASCII, every second byte is zero, which is an A as the
// fifth and the eighth of them.
func findUTF16(text []byte, from, to int) int {
	for i := from; i < to; i++ {
		n := bytes.IndexByte(text[i:to], 'A')
		if n < 0 || i+n+11 >= len(text) {
			return -1
		}
		if i += n; text[i+3] == 'A' && text[i+8] == 'A' && text[i+11] == 'A' {
			return i
		}
	}
	return -1
}

// findMixedHex returns the first hex in mixed case between from and to, or else otherwise.
func findMixedHex(text []byte, from, to, otherwise int) (at, end int) {
	for k := from + minMixedHex - 1; k < to; k += minMixedHex {
		if !isHex(text[k]) {
			continue
		}
		b, e := k, k
		for b > max(0, from-minMixedHex) && isHex(text[b-1]) {
			b--
		}
		for e < len(text) && isHex(text[e]) {
			e++
		}
		if e-b >= minMixedHex && hasMixedCase(text[b:e]) {
			return max(b, from), e
		}
		for k+minMixedHex < e {
			k += minMixedHex
		}
	}
	return otherwise, otherwise + 1
}

// endsBase64Line reports that a line of base64 ends at i.
func endsBase64Line(text []byte, i int) bool {
	if i < minLineLength {
		return false
	}
	for _, c := range text[i-minLineLength : i] {
		if !isBase64(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
