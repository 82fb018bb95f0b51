package redact

import (
	"encoding/binary"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Characters that a reader does not see, or sees as another one, can stand within a secret: copied
// text and the output of terminals have them, and models write them. Views drop the invisible ones,
// and show the others as ASCII. NUL is dropped as well, so that UTF-16 of ASCII is found.

// isInvisible reports soft hyphens, combining marks, marks of direction, joiners, spaces without
// width, fillers and variation selectors.
func isInvisible(r rune) bool {
	switch {
	case r == 0xAD, r >= 0x300 && r <= 0x36F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0:
		return true
	case r >= 0x180B && r <= 0x180F, r >= 0x1AB0 && r <= 0x1AFF, r >= 0x1DC0 && r <= 0x1DFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r >= 0x20D0 && r <= 0x20FF:
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xFE20 && r <= 0xFE2F, r == 0xFEFF, r >= 0xE0100 && r <= 0xE01EF:
		return true
	}
	return false
}

// lookalike returns the character of ASCII that r looks like: other hyphens, and what Unicode calls
// compatible, such as full-width and mathematical letters, circled ones and spaces that do not
// break. Tags, which nothing shows, repeat ASCII. Letters of other scripts are not among them.
func lookalike(r rune) (byte, bool) {
	switch {
	case r >= 0x2010 && r <= 0x2013, r == 0x2212:
		return '-', true
	case r >= 0xE0020 && r < 0xE007F:
		return byte(r - 0xE0000), true
	case r == 0xA0, r >= 0x2000 && r <= 0x200A, r == 0x202F, r >= 0x2070 && r <= 0x209C, r >= 0x2102 && r <= 0x2149:
	case r >= 0x2460 && r <= 0x24EA, r == 0x3000, r >= 0xFE50 && r <= 0xFE6B, r >= 0xFF01 && r <= 0xFF5E:
	case r >= 0x1D400 && r <= 0x1D7FF, r >= 0x1F130 && r <= 0x1F149:
	default:
		return 0, false
	}
	var char [utf8.UTFMax]byte
	same := norm.NFKC.Properties(char[:utf8.EncodeRune(char[:], r)]).Decomposition()
	if len(same) != 1 {
		return 0, false
	}
	return same[0], true
}

// escapeChar starts the sequences by which a terminal changes colors.
const escapeChar = 0x1B

// disguises are the first bytes of what undisguise decodes.
var disguises = [256]bool{
	escapeChar: true, 0xC2: true, 0xCC: true, 0xCD: true, 0xD8: true, 0xE1: true, 0xE2: true, 0xE3: true, 0xEF: true, 0xF0: true, 0xF3: true,
}

// undisguise decodes the character at text[i] if it is invisible or looks like one of ASCII: n
// bytes, which mean out[:m]. Of another character it returns the first byte.
func undisguise(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	out[0] = text[i]
	if !disguises[text[i]] {
		return 1, out, 1, false
	}
	if text[i] == escapeChar {
		if n, more = controlSequence(text[i:]); n > 0 {
			return n, out, 0, false
		}
		return 1, out, 1, more
	}
	if !utf8.FullRune(text[i:]) {
		return 1, out, 1, true
	}
	r, size := utf8.DecodeRune(text[i:])
	if isInvisible(r) {
		return size, out, 0, false
	}
	if c, ok := lookalike(r); ok {
		out[0] = c
		return size, out, 1, false
	}
	return 1, out, 1, false
}

// maxSequence limits a control sequence.
const maxSequence = 32

// controlSequence returns the length of the control sequence of a terminal at the start of a text,
// such as ESC [ 31 m; 0 if there is none. more: the text may end in one.
func controlSequence(text []byte) (n int, more bool) {
	for n = 1; n < min(len(text), maxSequence); n++ {
		switch c := text[n]; {
		case n == 1 && c != '[', c < ' ', c > '~':
			return 0, false
		case n > 1 && c >= '@':
			return n + 1, false
		}
	}
	return 0, n < maxSequence
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
