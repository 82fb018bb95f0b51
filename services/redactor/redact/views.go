package redact

import "bytes"

// The views of a text in which known values are looked for, besides the text itself.
const (
	viewPlain  = iota // without escapes
	viewBase64        // and without the line breaks within base64
	viewHex           // and in lower case
	viewCount
)

// leastWrap is the shortest line of base64 or hex whose break is passed over.
const leastWrap = 16

// views are texts made of a text: what encoders put into it is undone. A value is
// found where its plain text, its base64 or its hex is in one of them.
type views struct {
	k    *known
	next int  // position of the first byte that is not in the views yet
	row  int  // length of the run of base64 characters that ends there
	soft bool // within a line break that is passed over
	// nested is an escape of which the first sign was escaped itself, not complete yet.
	nested  []char
	view    [viewCount]view
	written []char // an escape as it is written
}

// char is a byte of the plain text, and where it came from.
type char struct {
	c          byte
	start, end int
}

// reset begins anew at a position.
func (v *views) reset(next int) {
	v.next, v.row, v.soft, v.nested = next, 0, false, v.nested[:0]
	for i := range v.view {
		v.view[i].reset()
	}
}

// read takes the next character of the text, whose bytes begin at position base. It
// reports false where the text may end within an escape, and more of it may come.
func (v *views) read(p *pass, closed bool) bool {
	i := v.next - p.base
	c := p.held[i]
	if !isEscape(c) && len(v.nested) == 0 {
		v.step(p, c, v.next, v.next+1)
		v.next++
		return true
	}
	n, out, m, more := plain(p.held, i)
	if more && !closed {
		return false
	}
	if len(v.nested) == 0 && (m != 1 || !isEscape(out[0])) {
		v.undone(p, nil, out[:m], v.next, v.next+n)
	} else {
		for _, c := range out[:m] { // it may begin an escape again
			v.nested = append(v.nested, char{c, v.next, v.next + n})
		}
		v.unnest(p, false)
	}
	v.next += n
	return true
}

// unnest undoes the escape that is nested, as soon as it is certain.
func (v *views) unnest(p *pass, closed bool) {
	for len(v.nested) > 0 {
		var held [maxNested]byte
		text := held[:0]
		for _, c := range v.nested[:min(len(v.nested), maxNested)] {
			text = append(text, c.c)
		}
		n, out, m, more := plain(text, 0)
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
		v.undone(p, v.nested[:n], read, v.nested[0].start, v.nested[n-1].end)
		v.nested = append(v.nested[:0], v.nested[n:]...)
	}
}

// maxNested is how long an escape may be of which the first sign was escaped.
const maxNested = 64

// step takes one byte of the plain text, and where it came from.
func (v *views) step(p *pass, c byte, start, end int) {
	v.feed(p, viewPlain, c, start, end)
	switch {
	case c == '\n' || c == '\r':
		if v.soft || v.row >= leastWrap {
			v.soft = true
			return
		}
	case v.soft && (c == ' ' || c == '\t'):
		return
	}
	v.soft = false
	if isBase64(c) || c == '-' || c == '_' {
		v.row++
	} else {
		v.row = 0
	}
	v.feed(p, viewBase64, c, start, end)
	v.feed(p, viewHex, fold(c), start, end)
}

// pending is the position from which the text may still become a match.
func (v *views) pending() int {
	out := v.next
	if len(v.nested) > 0 {
		out = v.nested[0].start
	}
	for i := range v.view {
		out = min(out, v.view[i].pending(v.k.views[i], out))
	}
	return out
}

func mixedCase(text []byte) bool {
	upper, lower := false, false
	for _, c := range text {
		upper = upper || isUpper(c)
		lower = lower || c >= 'a' && c <= 'z'
	}
	return upper && lower
}

// whole looks through all of p.held at once: only around escapes, breaks of base64 lines
// and hex in both cases do the views differ from the text.
func (v *views) whole(p *pass) {
	text, reach := p.held, max(v.k.longest, leastWrap)
	at, stop := v.trigger(text, 0)
	for at >= 0 {
		if at-reach > v.next || v.next == 0 {
			v.reset(max(0, at-reach))
		}
		// So many plain bytes may lie before the trigger, or follow it.
		for left := at - v.next + reach; v.next < len(text) && (left > 0 || v.pending() < v.next); left-- {
			from := v.next
			v.read(p, true)
			if from < stop || isEscape(text[from]) || v.soft {
				left = reach
			}
		}
		if v.next == len(text) {
			v.unnest(p, true)
		}
		at, stop = v.trigger(text, v.next)
	}
}

// window is how much text is looked through for a trigger at one time.
const window = 4096

// trigger finds the first place at or after i where a view differs from the text, and
// where that ends.
func (v *views) trigger(text []byte, i int) (at, end int) {
	for ; i < len(text); i += window {
		rest := text[i:min(i+window, len(text))]
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
				if from += n; wrapped(text, i+from) {
					rest, at = rest[:from], i+from
				}
			}
		}
		if at, end = mixedHex(text, i, i+len(rest), at); at >= 0 {
			return at, end
		}
	}
	return -1, 0
}

// mixedHex finds hex in both cases between from and to, or gives what was found without.
func mixedHex(text []byte, from, to, otherwise int) (at, end int) {
	for k := from + leastWrap - 1; k < to; k += leastWrap {
		if !isHex(text[k]) {
			continue
		}
		b, e := k, k
		for b > max(0, from-leastWrap) && isHex(text[b-1]) {
			b--
		}
		for e < len(text) && isHex(text[e]) {
			e++
		}
		if e-b >= leastWrap && mixedCase(text[b:e]) {
			return max(b, from), e
		}
		for k+leastWrap < e {
			k += leastWrap
		}
	}
	return otherwise, otherwise + 1
}

// wrapped reports a line of base64 that ends at i.
func wrapped(text []byte, i int) bool {
	if i < leastWrap {
		return false
	}
	for _, c := range text[i-leastWrap : i] {
		if !isBase64(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
