package redact

import "bytes"

// decoded is a text as it reads with its signs of the form \uXXXX decoded, also where
// the text is a string of a JSON text again and has the backslash twice or more. It
// remembers what each byte stands for, so that what is not taken out stays as it is
// written. All other escapes are left to the rules.
type decodedText struct {
	raw  []byte
	ends []int  // ends[i] is where in raw the sign ends that byte i of the text stands for
	held []byte // an escape that is not complete
}

// unicodeEscape is what a text with signs to decode has in it.
const unicodeEscape = `\u`

func hasUnicodeEscapes(text []byte) bool { return bytes.Contains(text, []byte(unicodeEscape)) }

// read appends a piece to dst, decoded; closed: no more follows.
func (v *decodedText) write(dst, piece []byte, closed bool) []byte {
	for len(piece) > 0 {
		if len(v.held) == 0 {
			n := bytes.IndexByte(piece, '\\')
			if n < 0 {
				n = len(piece)
			}
			for _, c := range piece[:n] {
				dst = v.appendChar(dst, []byte{c}, 1, []byte{c})
			}
			if piece = piece[n:]; len(piece) == 0 {
				break
			}
		}
		v.held, piece = append(v.held, piece[0]), piece[1:]
		dst = v.decodeHeld(dst, closed && len(piece) == 0)
	}
	if closed {
		dst = v.decodeHeld(dst, true)
	}
	return dst
}

// decode appends what is certain of the held escape.
func (v *decodedText) decodeHeld(dst []byte, closed bool) []byte {
	for len(v.held) > 0 {
		n, out, m, more := unescapeBackslash(v.held, 0)
		if more && !closed {
			return dst
		}
		digits := bytes.TrimLeft(v.held, `\`)
		if m == 0 || v.held[0] != '\\' || digits[0] != 'u' { // not a sign by its number
			n, m, out[0] = 1, 1, v.held[0]
		}
		dst = v.appendChar(dst, v.held[:n], n, out[:m])
		v.held = append(v.held[:0], v.held[n:]...)
	}
	return dst
}

// sign appends what a part of the text reads as. Of a sign of several bytes the last
// stands for all of it.
func (v *decodedText) appendChar(dst, raw []byte, size int, read []byte) []byte {
	at := len(v.raw)
	for i := range read {
		end := at
		if i == len(read)-1 {
			end += size
		}
		v.ends = append(v.ends, end)
	}
	v.raw = append(v.raw, raw...)
	return append(dst, read...)
}

// written is how text[from:to] is written.
func (v *decodedText) original(from, to int) []byte { return v.raw[v.rawStart(from):v.rawStart(to)] }

// escaped reports that text[from:to] is not written as it reads.
func (v *decodedText) isEscaped(from, to int) bool { return v.rawStart(to)-v.rawStart(from) != to-from }

// start is where in raw the sign of byte i begins.
func (v *decodedText) rawStart(i int) int {
	if i == 0 {
		return 0
	}
	return v.ends[i-1]
}

// forget drops the first n bytes of the text.
func (v *decodedText) trim(n int) {
	gone := v.rawStart(n)
	v.raw = append(v.raw[:0], v.raw[gone:]...)
	v.ends = append(v.ends[:0], v.ends[n:]...)
	for i := range v.ends {
		v.ends[i] -= gone
	}
}
