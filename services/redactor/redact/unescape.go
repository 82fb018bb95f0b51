package redact

import (
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
		m = 1
		n, out[0], more = unescapePercent(text, i)
	case '&':
		n, out, m, more = unescapeEntity(text, i)
	default:
		n, m, out[0] = 1, 1, text[i]
	}
	return n, out, m, more
}

// unescapeBackslash decodes \n, \x41 and \u0041, after any number of backslashes.
// Backslashes before other characters are dropped.
func unescapeBackslash(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	for i+n < len(text) && n < maxSlashes && text[i+n] == '\\' {
		n++
	}
	if i+n == len(text) {
		return n, out, 0, n < maxSlashes
	}
	digits := 0
	switch text[i+n] {
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
		digits = 2
	case 'u':
		digits = 4
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
	if !utf16.IsSurrogate(r) {
		return n, out, utf8.EncodeRune(out[:], r), false
	}
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
	if whole := utf16.DecodeRune(r, low); ok && whole == utf8.RuneError {
		ok = false // not a surrogate pair
	}
	if !ok {
		return n, out, utf8.EncodeRune(out[:], utf8.RuneError), more
	}
	return n + k + 1 + digits, out, utf8.EncodeRune(out[:], utf16.DecodeRune(r, low)), false
}

// readHex reads a hex number with that many digits.
func readHex(text []byte, i, digits int) (r rune, ok, more bool) {
	for k := range digits {
		if i+k == len(text) {
			return 0, false, true
		}
		c := text[i+k]
		switch {
		case !isHex(c):
			return 0, false, false
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r, true, false
}

// unescapePercent decodes %41, %2541, and so on.
func unescapePercent(text []byte, i int) (n int, c byte, more bool) {
	n = 1
	for k := 0; ; k++ {
		r, ok, more := readHex(text, i+n, 2)
		if !ok {
			if n == 1 {
				return 1, '%', more
			}
			return n, '%', more // %25 without hex digits after it
		}
		n += 2
		if r != '%' || k >= maxNesting {
			return n, byte(r), false //nolint:gosec // G115: two digits
		}
	}
}

// unescapeEntity decodes &#65;, &amp; and &amp;#65;.
func unescapeEntity(text []byte, i int) (n int, out [utf8.UTFMax]byte, m int, more bool) {
	out[0] = '&'
	n = 1
	for k := 0; ; k++ {
		end := i + n
		for end < len(text) && end < i+n+maxEntity && (isWord(text[end]) || text[end] == '#' && end == i+n) {
			end++
		}
		switch {
		case end == len(text) && end < i+n+maxEntity:
			return n, out, 1, true
		case end == i+n || end == len(text) || text[end] != ';':
			return n, out, 1, false
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

// unescapeAll undoes all escapes of a text.
func unescapeAll(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		n, c, m, _ := unescapeAt(text, i)
		if m != 1 || c[0] != '\\' {
			out = append(out, c[:m]...)
		}
		i += n
	}
	return out
}
