package redact

import "bytes"

// Programs print bytes as hex in groups: 4a 6f 68, 4A:6F:68, 4a6f 686e, 0x4a, 0x6f, <Buffer 4a 6f>.
// viewHex shows them without what stands between the groups.

// hexDump is what was read of a dump.
type hexDump struct {
	digits bool // the last character but the separators was a digit
	gap    int  // separators since
	// dropped is the end of the last separator that viewHex does not have.
	dropped int
	// zero is a digit 0 behind separators, which may begin 0x; its value is 0 if there is none.
	zero sourceByte
}

// maxSeparators limits the separators between two groups.
const maxSeparators = 4

// separators are the characters between groups of hex.
var separators = [256]bool{' ': true, ',': true, ':': true, '-': true, '\t': true, '\n': true, '\r': true}

// feedHex feeds a character to viewHex, unless it separates groups.
func (v *viewSet) feedHex(ks *knownScan, c sourceByte) {
	d := &v.dump
	if zero := d.zero; zero.value != 0 {
		d.zero = sourceByte{}
		if c.value == 'x' {
			return
		}
		v.feedView(ks, viewHex, zero.value, zero.start, zero.end)
	}
	switch {
	case d.gap > 0 && c.value == '0':
		d.gap, d.zero = 0, c
		return
	case isHex(c.value):
		d.digits, d.gap = true, 0
	case d.digits && d.gap < maxSeparators && separators[c.value]:
		d.gap, d.dropped = d.gap+1, c.end
		return
	default:
		d.digits, d.gap = false, 0
	}
	v.feedView(ks, viewHex, c.value, c.start, c.end)
}

// dumpStep is how often findDump looks: eight bytes in groups of two digits have 23 characters, of
// which eight are enough.
const dumpStep = 12

// findDump returns the first place between from and to with groups of two or four hex digits; -1 if
// there is none. Groups of four are found from twelve bytes on.
func findDump(text []byte, from, to int) int {
	for k := from + dumpStep - 1; k < to; k += dumpStep {
		if isGroups(text[k:]) {
			for n := 0; n < 2*dumpStep && k > from && (isHex(text[k-1]) || separators[text[k-1]]); n++ {
				k--
			}
			return k
		}
	}
	for i := from + 1; i < to; i++ { // 0x4a
		n := bytes.IndexByte(text[i:to], 'x')
		if n < 0 {
			return -1
		}
		if i += n; isNumber(text, i) {
			return i - 1
		}
	}
	return -1
}

// isDump reports that findDump finds a text, wherever it begins to look. Other hex with separators is
// not a dump, so that a stream, which is read whole, has the result of a text.
func isDump(text []byte) bool {
	same := 0
	for i := range text {
		if same++; !isGroups(text[i:]) {
			same = 0
		}
		if same == dumpStep || i > 0 && isNumber(text, i) {
			return true
		}
	}
	return false
}

// isNumber reports that text[i] is the x of 0x4a.
func isNumber(text []byte, i int) bool {
	return text[i] == 'x' && text[i-1] == '0' && i+3 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) && separators[text[i+3]]
}

// isGroups reports that a text begins within groups of two or four hex digits.
func isGroups(text []byte) bool {
	const window = 14 // four digits, a separator, a group of four, a separator and four digits
	if len(text) > window {
		text = text[:window]
	}
	first := 0
	for first < len(text) && isHex(text[first]) {
		first++
	}
	if first > 4 || first == len(text) || !separators[text[first]] {
		return false
	}
	size := 0
	for rest := text[first+1:]; size < len(rest) && isHex(rest[size]); {
		size++
	}
	second := first + 1 + size
	if size != 2 && size != 4 || first > size || second+size >= len(text) || !separators[text[second]] {
		return false
	}
	for _, c := range text[second+1 : second+1+size] {
		if !isHex(c) {
			return false
		}
	}
	return true
}
