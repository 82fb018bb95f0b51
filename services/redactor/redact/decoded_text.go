package redact

import "bytes"

// decodedText maps a text with \uXXXX decoded to the original text, so that unchanged parts
// keep their escapes. \uXXXX may have several backslashes, as in JSON in JSON. The rules
// handle all other escapes.
type decodedText struct {
	raw  []byte
	ends []int  // ends[i] is the end in raw of the character of byte i
	held []byte // an incomplete escape
}

// unicodeEscape is in every text with characters to decode.
const unicodeEscape = `\u`

func hasUnicodeEscapes(text []byte) bool { return bytes.Contains(text, []byte(unicodeEscape)) }

// write appends a piece to dst, decoded; closed: it is the last piece.
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

// decodeHeld appends the held escape if it is complete.
func (v *decodedText) decodeHeld(dst []byte, closed bool) []byte {
	for len(v.held) > 0 {
		n, out, m, more := unescapeBackslash(v.held, 0)
		if more && !closed {
			return dst
		}
		digits := bytes.TrimLeft(v.held, `\`)
		if m == 0 || v.held[0] != '\\' || digits[0] != 'u' { // not a \uXXXX escape
			n, m, out[0] = 1, 1, v.held[0]
		}
		dst = v.appendChar(dst, v.held[:n], n, out[:m])
		v.held = append(v.held[:0], v.held[n:]...)
	}
	return dst
}

// appendChar appends one decoded character. Of its bytes, the last one maps to the whole
// escape.
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

// original returns text[from:to] as it was written.
func (v *decodedText) original(from, to int) []byte { return v.raw[v.rawStart(from):v.rawStart(to)] }

// isEscaped reports that text[from:to] contains an escape.
func (v *decodedText) isEscaped(from, to int) bool { return v.rawStart(to)-v.rawStart(from) != to-from }

// rawStart returns the start in raw of the character of byte i.
func (v *decodedText) rawStart(i int) int {
	if i == 0 {
		return 0
	}
	return v.ends[i-1]
}

// trim removes the first n bytes of the text.
func (v *decodedText) trim(n int) {
	gone := v.rawStart(n)
	v.raw = append(v.raw[:0], v.raw[gone:]...)
	v.ends = append(v.ends[:0], v.ends[n:]...)
	for i := range v.ends {
		v.ends[i] -= gone
	}
}
