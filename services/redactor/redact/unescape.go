package redact

import (
	"bytes"
	"html"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of one escaped character.
const (
	maxNesting = 8  // levels, as in %252525…41 and &amp;amp;…lt;
	maxEntity  = 32 // bytes of the name or number of an HTML entity
)

// isEscape reports a byte that may start an escape.
func isEscape(c byte) bool { return c == '\\' || c == '%' || c == '&' }

// unescapeAt decodes the character at text[i]: n bytes, which mean out[:m]. It undoes all
// levels of escapes of JSON, URLs and HTML. Other backslashes are dropped, as they are in
// the patterns. An escaped escape character is returned, since it may start another escape.
// more: the text may end in an incomplete escape.
func unescapeAt(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	switch text[i] {
	case '\\':
		n, out, m, more = unescapeBackslash(text, i)
	case '%':
		n, out, m, more = unescapePercent(text, i)
	case '&':
		n, out, m, more = unescapeEntity(text, i)
	default:
		n, m, out[0] = 1, 1, text[i]
	}
	if m > 1 {
		out, m = plain(out[:m])
	}
	return n, out, m, more
}

// unescapeBackslash decodes \n, \x41, \x{41}, \u0041, \u{41}, \U00000041 and \101, after any number
// of backslashes. Backslashes before other characters are dropped.
func unescapeBackslash(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	for i+n < len(text) && n < maxSlashes && text[i+n] == '\\' {
		n++
	}
	if i+n == len(text) {
		return n, out, 0, n < maxSlashes
	}
	digits := 0
	switch c := text[i+n]; c {
	case 'n':
		out[0] = '\n'
	case 'r':
		out[0] = '\r'
	case 't':
		out[0] = '\t'
	case 'b':
		out[0] = '\b'
	case 'f':
		out[0] = '\f'
	case 'x':
		if i+n+1 < len(text) && text[i+n+1] == '{' {
			return unescapeBraces(text, i, n)
		}
		digits = 2
	case 'u':
		if i+n+1 == len(text) {
			return n, out, 0, true
		}
		if text[i+n+1] == '{' {
			return unescapeBraces(text, i, n)
		}
		digits = 4
	case 'U':
		digits = 8
	case '0', '1', '2', '3':
		return unescapeOctal(text, i, n)
	default:
		return n, out, 0, false
	}
	if digits == 0 {
		return n + 1, out, 1, false
	}
	r, ok, more := readHex(text, i+n+1, digits)
	if !ok {
		return n, out, 0, more
	}
	n += 1 + digits
	if digits == 2 {
		out[0] = byte(r) //nolint:gosec // G115: two digits
		return n, out, 1, false
	}
	if digits == 8 || !utf16.IsSurrogate(r) {
		return n, out, utf8.EncodeRune(out[:], r), false
	}
	return unescapePair(text, i, n, r)
}

// unescapePair decodes the low half of a surrogate pair, whose high half ends after n bytes.
func unescapePair(text []byte, i, n int, high rune) (_ int, out [utf8.UTFMax]byte, m int, more bool) {
	const digits = 4
	k := 0
	for i+n+k < len(text) && k < maxSlashes && text[i+n+k] == '\\' {
		k++
	}
	switch {
	case i+n+k == len(text):
		return n, out, utf8.EncodeRune(out[:], utf8.RuneError), k < maxSlashes
	case k == 0 || text[i+n+k] != 'u':
		return n, out, utf8.EncodeRune(out[:], utf8.RuneError), false
	}
	low, ok, more := readHex(text, i+n+k+1, digits)
	if whole := utf16.DecodeRune(high, low); ok && whole == utf8.RuneError {
		ok = false // not a surrogate pair
	}
	if !ok {
		return n, out, utf8.EncodeRune(out[:], utf8.RuneError), more
	}
	return n + k + 1 + digits, out, utf8.EncodeRune(out[:], utf16.DecodeRune(high, low)), false
}

// unescapeBraces decodes \u{41} and \x{41}, of which n bytes are backslashes.
func unescapeBraces(text []byte, i, n int) (_ int, out [utf8.UTFMax]byte, m int, more bool) {
	const maxDigits = 6
	var r rune
	for k := 0; ; k++ {
		at := i + n + 2 + k
		switch {
		case at == len(text):
			return n, out, 0, true
		case text[at] == '}' && k > 0:
			return n + 3 + k, out, utf8.EncodeRune(out[:], r), false
		case k == maxDigits || !isHex(text[at]):
			return n, out, 0, false
		}
		r = r<<4 | hexDigit(text[at])
	}
}

// unescapeOctal decodes \101, of which n bytes are backslashes.
func unescapeOctal(text []byte, i, n int) (_ int, out [utf8.UTFMax]byte, m int, more bool) {
	c := byte(0)
	for k := range 3 {
		at := i + n + k
		if at == len(text) {
			return n, out, 0, true
		}
		if text[at] < '0' || text[at] > '7' {
			return n, out, 0, false
		}
		c = c<<3 | (text[at] - '0')
	}
	out[0] = c
	return n + 3, out, 1, false
}

// readHex reads a hex number with that many digits.
func readHex(text []byte, i, digits int) (r rune, ok, more bool) {
	for k := range digits {
		if i+k == len(text) {
			return 0, false, true
		}
		if !isHex(text[i+k]) {
			return 0, false, false
		}
		r = r<<4 | hexDigit(text[i+k])
	}
	return r, true, false
}

// hexDigit returns the value of a hex digit.
func hexDigit(c byte) rune {
	if isDigit(c) {
		return rune(c - '0')
	}
	return rune(c|0x20-'a') + 10
}

// unescapePercent decodes %41, %2541, and so on, and %u0041.
func unescapePercent(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	out[0], n = '%', 1
	for k := 0; ; k++ {
		if i+n < len(text) && text[i+n] == 'u' {
			return unescapePercentU(text, i, n)
		}
		r, ok, more := readHex(text, i+n, 2)
		if !ok {
			return n, out, 1, more // %25 may stand without hex digits after it
		}
		n += 2
		if r != '%' || k >= maxNesting {
			out[0] = byte(r) //nolint:gosec // G115: two digits
			return n, out, 1, false
		}
	}
}

// unescapePercentU decodes %u0041, of which n bytes come before the u.
func unescapePercentU(text []byte, i, n int) (_ int, out [utf8.UTFMax]byte, m int, more bool) {
	const digits = 4
	r, ok, more := readHex(text, i+n+1, digits)
	if !ok {
		out[0] = '%'
		return n, out, 1, more
	}
	n += 1 + digits
	if !utf16.IsSurrogate(r) {
		return n, out, utf8.EncodeRune(out[:], r), false
	}
	for k, want := range []byte("%u") {
		switch {
		case i+n+k == len(text):
			return n, out, utf8.EncodeRune(out[:], utf8.RuneError), true
		case text[i+n+k] != want:
			return n, out, utf8.EncodeRune(out[:], utf8.RuneError), false
		}
	}
	low, ok, more := readHex(text, i+n+2, digits)
	whole := utf16.DecodeRune(r, low)
	if !ok || whole == utf8.RuneError {
		return n, out, utf8.EncodeRune(out[:], utf8.RuneError), more
	}
	return n + 2 + digits, out, utf8.EncodeRune(out[:], whole), false
}

// unescapeEntity decodes &#65;, &amp; and &amp;#65;, also without the semicolon.
func unescapeEntity(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	out[0] = '&'
	n = 1
	for k := 0; ; k++ {
		end := i + n
		for end < len(text) && end < i+n+maxEntity && (isWord(text[end]) || text[end] == '#' && end == i+n) {
			end++
		}
		more := end == len(text) && end < i+n+maxEntity
		if more || end == i+n || end == len(text) || text[end] != ';' {
			if k, c, m := unescapeUnended(text[i+n : end]); k > 0 {
				return n + k, c, m, more
			}
			return n, out, 1, more
		}
		s := html.UnescapeString("&" + string(text[i+n:end+1]))
		if len(s) > utf8.UTFMax || s[0] == '&' && len(s) > 1 {
			return n, out, 1, false
		}
		n = end + 1 - i
		if s != "&" || k >= maxNesting {
			return n, out, copy(out[:], s), false
		}
	}
}

// bareEntities are the names that browsers accept without a semicolon and that stand for
// characters of ASCII.
var bareEntities = []struct {
	name string
	char byte
}{{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"LT", '<'}, {"GT", '>'}, {"AMP", '&'}, {"QUOT", '"'}}

// unescapeUnended decodes an entity without a semicolon at the start of a word: its n bytes mean
// out[:m]. n is 0 if there is none.
func unescapeUnended(word []byte) (n int, out [utf8.UTFMax]byte, m int) {
	if len(word) > 1 && word[0] == '#' {
		return unescapeNumber(word)
	}
	for _, e := range bareEntities {
		if bytes.HasPrefix(word, []byte(e.name)) {
			out[0] = e.char
			return len(e.name), out, 1
		}
	}
	return 0, out, 0
}

// unescapeNumber decodes #65 and #x41 at the start of a word.
func unescapeNumber(word []byte) (n int, out [utf8.UTFMax]byte, m int) {
	base, first, digit := rune(10), 1, isDigit
	if word[1] == 'x' || word[1] == 'X' {
		base, first, digit = 16, 2, isHex
	}
	var r rune
	for n = first; n < len(word) && digit(word[n]) && r <= utf8.MaxRune; n++ {
		r = r*base + hexDigit(word[n])
	}
	if n == first || r > utf8.MaxRune {
		return 0, out, 0
	}
	return n, out, utf8.EncodeRune(out[:], r)
}

// unescapeAll undoes all escapes of a text.
func unescapeAll(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		n, c, m, _ := undisguise(text, i)
		if isEscape(text[i]) {
			n, c, m, _ = unescapeAt(text, i)
		}
		if m != 1 || c[0] != '\\' && c[0] != 0 {
			out = append(out, c[:m]...)
		}
		i += n
	}
	return out
}
