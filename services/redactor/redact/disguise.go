package redact

import (
	"encoding/binary"
	"unicode/utf8"
)

// Characters that a reader does not see, or sees as another one, can stand within a secret:
// copied text has them, and models write them. Views drop the invisible ones and show the wide
// ones as ASCII. NUL is dropped as well, so that UTF-16 of ASCII is found.

// isInvisible reports soft hyphens, combining marks, marks of direction, joiners, spaces without
// width and variation selectors.
func isInvisible(r rune) bool {
	switch {
	case r == 0xAD, r >= 0x300 && r <= 0x36F, r == 0x180E, r >= 0x1AB0 && r <= 0x1AFF, r >= 0x1DC0 && r <= 0x1DFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r >= 0x20D0 && r <= 0x20FF:
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xFE20 && r <= 0xFE2F, r == 0xFEFF:
		return true
	}
	return false
}

// The full-width forms of ASCII, and the wide space.
const (
	wideFirst = 0xFF01 // !
	wideLast  = 0xFF5E // ~
	wideSpace = 0x3000
)

// disguises are the first bytes of characters that are invisible or wide.
var disguises = [256]bool{0xC2: true, 0xCC: true, 0xCD: true, 0xE1: true, 0xE2: true, 0xE3: true, 0xEF: true}

// undisguise decodes the character at text[i] if it is invisible or wide: n bytes, which mean
// out[:m]. Of another character it returns the first byte.
func undisguise(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	out[0] = text[i]
	if !disguises[text[i]] {
		return 1, out, 1, false
	}
	if !utf8.FullRune(text[i:]) {
		return 1, out, 1, true
	}
	switch r, size := utf8.DecodeRune(text[i:]); {
	case isInvisible(r):
		return size, out, 0, false
	case r >= wideFirst && r <= wideLast:
		out[0] = byte(r - wideFirst + '!') //nolint:gosec // G115: ASCII
		return size, out, 1, false
	case r == wideSpace:
		out[0] = ' '
		return size, out, 1, false
	}
	return 1, out, 1, false
}

// plain returns a decoded character, or what it disguises.
func plain(char []byte) (out [utf8.UTFMax]byte, m int) {
	if n, out, m, _ := undisguise(char, 0); n == len(char) {
		return out, m
	}
	return out, copy(out[:], char)
}

// findDisguise returns the first place of a text with NUL, or with an invisible or wide
// character; -1 if there is none.
func findDisguise(text []byte) int {
	for i := 0; i < len(text); {
		if i = skipASCII(text, i); i == len(text) {
			break
		}
		c := text[i]
		if c == 0 {
			return i
		}
		if n, _, m, _ := undisguise(text, i); n > 1 || m == 0 {
			return i
		}
		i++
	}
	return -1
}

// skipASCII returns the first place at or after i that is not ASCII, or is NUL, by eight bytes at
// a time.
func skipASCII(text []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		if (w|(w-ones))&highs != 0 { // a high bit, or a byte that was 0
			break
		}
	}
	for i < len(text) && text[i] != 0 && text[i] < utf8.RuneSelf {
		i++
	}
	return i
}
