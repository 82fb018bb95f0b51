package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// maxEncoded is the longest value whose encodings are matched as well, in
// bytes. The automaton grows with the sum of all forms; a longer value is a
// document rather than a credential and is matched as it is.
const maxEncoded = 4096

// forms lists the texts under which a value is recognised: the value itself
// and what base64, hex, percent and JSON encoders make of it.
func forms(v string) []string {
	out := make([]string, 0, 24)
	if utf8.ValidString(v) { // replacing a part of a rune would leave broken UTF-8
		out = append(out, v)
	}
	if len(v) > maxEncoded {
		return out
	}
	out = append(out, base64Forms(v)...)
	lower := hex.EncodeToString([]byte(v))
	out = append(out, lower, strings.ToUpper(lower))
	out = append(out, percentForms(v)...)
	for _, f := range out { // of those so far
		if strings.ContainsAny(f, "~/") {
			// Twice, for the name that the pointer leads to may be a pointer itself. A
			// slash may have been escaped before: see decode.
			out = append(out, pointerForm(f), pointerForm(pointerForm(f)), strings.ReplaceAll(f, "~", "~0"))
		}
	}
	return out
}

// pointerForm is a text as a member's name in a JSON pointer, which says where a
// document is wrong (RFC 6901 §3).
func pointerForm(v string) string {
	return strings.ReplaceAll(strings.ReplaceAll(v, "~", "~0"), "/", "~1")
}

// base64Forms are the parts of a base64 text that the value alone determines,
// for each of the three places it can have within a group of three bytes. A
// character that also carries bits of a neighbour is left out.
func base64Forms(v string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), v...))
			first := [...]int{0, 2, 3}[before]
			last := (before + len(v)) * 8 / 6
			out = append(out, text[first:last])
		}
	}
	return out
}

// percentForms are the value in a URL: as the usual encoders write it, and with
// every byte escaped.
func percentForms(v string) []string {
	var all strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&all, "%%%02X", v[i])
	}
	var out []string
	for _, s := range []string{url.QueryEscape(v), url.PathEscape(v), all.String()} {
		out = append(out, s, lowerEscapes(s))
	}
	return out
}

// lowerEscapes writes the hex digits of percent escapes in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}
