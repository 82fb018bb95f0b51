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
const minLineLength = 16

// viewSet are the views of one text: the changes of encoders are undone. A value is found
// where its plain text, its base64 or its hex is in a view.
type viewSet struct {
	known       *knownValues
	next        int  // position of the first byte that was not read yet
	runLength   int  // length of the run of base64 characters before it
	inLineBreak bool // in a line break that is removed
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
	v.next, v.runLength, v.inLineBreak, v.nested = next, 0, false, v.nested[:0]
	for i := range v.view {
		v.view[i].reset()
	}
}

// readChar reads the next character of the text. It returns false if the text may end in an
// incomplete escape.
func (v *viewSet) readChar(ks *knownScan, closed bool) bool {
	i := v.next - ks.base
	c := ks.held[i]
	if !isEscape(c) && len(v.nested) == 0 {
		v.feedViews(ks, c, v.next, v.next+1)
		v.next++
		return true
	}
	n, out, m, more := unescapeAt(ks.held, i)
	if more && !closed {
		return false
	}
	if len(v.nested) == 0 && (m != 1 || !isEscape(out[0])) {
		v.feedEscape(ks, nil, out[:m], v.next, v.next+n)
	} else {
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
	v.feedView(ks, viewUnescaped, c, start, end)
	switch {
	case c == '\n' || c == '\r':
		if v.inLineBreak || v.runLength >= minLineLength {
			v.inLineBreak = true
			return
		}
	case v.inLineBreak && (c == ' ' || c == '\t'):
		return
	}
	v.inLineBreak = false
	if isBase64(c) || c == '-' || c == '_' {
		v.runLength++
	} else {
		v.runLength = 0
	}
	v.feedView(ks, viewBase64, c, start, end)
	v.feedView(ks, viewHex, fold(c), start, end)
}

// pendingFrom returns the position from which the text may still become a match.
func (v *viewSet) pendingFrom() int {
	out := v.next
	if len(v.nested) > 0 {
		out = v.nested[0].start
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
		for _, c := range []byte{'\\', '%', '&'} {
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
		if at, end = findMixedHex(text, i, i+len(rest), at); at >= 0 {
			return at, end
		}
	}
	return -1, 0
}

// findMixedHex returns the first hex in mixed case between from and to, or else otherwise.
func findMixedHex(text []byte, from, to, otherwise int) (at, end int) {
	for k := from + minLineLength - 1; k < to; k += minLineLength {
		if !isHex(text[k]) {
			continue
		}
		b, e := k, k
		for b > max(0, from-minLineLength) && isHex(text[b-1]) {
			b--
		}
		for e < len(text) && isHex(text[e]) {
			e++
		}
		if e-b >= minLineLength && hasMixedCase(text[b:e]) {
			return max(b, from), e
		}
		for k+minLineLength < e {
			k += minLineLength
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
