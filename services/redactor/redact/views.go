package redact

import "bytes"

// The views of a text in which known values are looked for, besides the text itself.
const (
	viewUnescaped = iota // without escapes
	viewBase64           // and without the line breaks within base64
	viewHex              // and in lower case
	viewCount
)

// leastWrap is the shortest line of base64 or hex whose break is passed over.
const minLineLength = 16

// views are texts made of a text: what encoders put into it is undone. A value is
// found where its plain text, its base64 or its hex is in one of them.
type viewSet struct {
	known       *knownValues
	next        int  // position of the first byte that is not in the views yet
	runLength   int  // length of the run of base64 characters that ends there
	inLineBreak bool // within a line break that is passed over
	// nested is an escape of which the first sign was escaped itself, not complete yet.
	nested  []sourceByte
	view    [viewCount]view
	written []sourceByte // an escape as it is written
}

// char is a byte of the plain text, and where it came from.
type sourceByte struct {
	value      byte
	start, end int
}

// reset begins anew at a position.
func (v *viewSet) reset(next int) {
	v.next, v.runLength, v.inLineBreak, v.nested = next, 0, false, v.nested[:0]
	for i := range v.view {
		v.view[i].reset()
	}
}

// read takes the next character of the text, whose bytes begin at position base. It
// reports false where the text may end within an escape, and more of it may come.
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
		for _, c := range out[:m] { // it may begin an escape again
			v.nested = append(v.nested, sourceByte{c, v.next, v.next + n})
		}
		v.resolveNested(ks, false)
	}
	v.next += n
	return true
}

// unnest undoes the escape that is nested, as soon as it is certain.
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
		if n == 1 && !isEscape(text[0]) { // all bytes of one letter
			for n < len(text) && v.nested[n].start == v.nested[0].start && !isEscape(text[n]) {
				n++
			}
			read = text[:n]
		}
		v.feedEscape(ks, v.nested[:n], read, v.nested[0].start, v.nested[n-1].end)
		v.nested = append(v.nested[:0], v.nested[n:]...)
	}
}

// maxNested is how long an escape may be of which the first sign was escaped.
const maxNested = 64

// step takes one byte of the plain text, and where it came from.
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

// pending is the position from which the text may still become a match.
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

// whole looks through all of p.held at once: only around escapes, breaks of base64 lines
// and hex in both cases do the views differ from the text.
func (v *viewSet) scanAll(ks *knownScan) {
	text, reach := ks.held, max(v.known.longest, minLineLength)
	at, stop := v.findTrigger(text, 0)
	for at >= 0 {
		if at-reach > v.next || v.next == 0 {
			v.reset(max(0, at-reach))
		}
		// So many plain bytes may lie before the trigger, or follow it.
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

// window is how much text is looked through for a trigger at one time.
const triggerWindow = 4096

// trigger finds the first place at or after i where a view differs from the text, and
// where that ends.
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

// mixedHex finds hex in both cases between from and to, or gives what was found without.
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

// wrapped reports a line of base64 that ends at i.
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
