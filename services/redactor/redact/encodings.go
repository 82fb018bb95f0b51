package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEncoded is the longest value whose encodings are matched as well, in
// bytes. The automaton grows with the sum of all forms; a longer value is a
// document rather than a credential and is matched as it is.
const maxEncoded = 4096

// forms lists the texts under which a value is recognised: the value itself
// and what base64, hex, percent and JSON encoders make of it.
func encodings(v string) []string {
	out := make([]string, 0, 20)
	if utf8.ValidString(v) { // replacing a part of a rune would leave broken UTF-8
		out = append(out, v)
	}
	if len(v) > maxEncoded {
		return out
	}
	out = append(out, base64Encodings(v)...)
	lower := hex.EncodeToString([]byte(v))
	out = append(out, lower, strings.ToUpper(lower))
	out = append(out, percentEncodings(v)...)
	out = append(out, jsonEncodings(v)...)
	out = append(out, slices.DeleteFunc(unescapedEncodings(v), func(s string) bool { return !utf8.ValidString(s) })...)
	return append(out, pointerEncodings(out)...)
}

// pointerForms are texts as the names of members in a JSON pointer, which says where a
// document is wrong (RFC 6901 §3).
func pointerEncodings(texts []string) []string {
	name := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1") }
	var out []string
	for _, s := range texts {
		if strings.ContainsAny(s, "~/") {
			// Twice, for the name may be that of a pointer itself. A slash may have been
			// escaped before.
			out = append(out, name(s), name(name(s)), strings.ReplaceAll(s, "~", "~0"))
		}
	}
	return out
}

// plainForms are the value as the view without escapes shows it: with the escapes in
// it undone like all others, or kept where each of its characters was escaped; also
// where a query has made a plus of each space. A value such as pa%ffss may be no UTF-8
// then.
func unescapedEncodings(v string) []string {
	var out []string
	for _, bare := range []string{string(unescapeAll([]byte(v))), strings.ReplaceAll(v, `\`, "")} {
		if len(bare) < MinLength {
			continue
		}
		for _, text := range []string{bare, strings.ReplaceAll(bare, " ", "+")} {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// viewForms lists the texts under which a value is recognised in each view.
func viewEncodings(v string) (out [viewCount][]string) {
	if len(v) > maxEncoded {
		return out
	}
	out[viewUnescaped] = unescapedEncodings(v)
	// Escapes of one kind may hide those of another: a view undoes each sign once.
	for _, text := range slices.Concat(percentEncodings(v), jsonEncodings(v), pointerEncodings(out[viewUnescaped])) {
		if bare := strings.ReplaceAll(text, `\`, ""); len(bare) >= MinLength && !slices.Contains(out[viewUnescaped], bare) {
			out[viewUnescaped] = append(out[viewUnescaped], bare)
		}
	}
	out[viewBase64] = base64Encodings(v)
	out[viewHex] = []string{hex.EncodeToString([]byte(v))}
	return out
}

// base64Forms are the parts of a base64 text that the value alone determines,
// for each of the three places it can have within a group of three bytes. A
// character that also carries bits of a neighbour is left out. JSON documents are
// put into base64 whole, and then a value has its escapes: the line breaks of a key
// in a file of credentials.
func base64Encodings(v string) []string {
	written := append(jsonEncodings(v), v)
	slices.Sort(written)
	var out []string
	for _, v := range slices.Compact(written) {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				text := enc.EncodeToString(append(make([]byte, before), v...))
				first := [...]int{0, 2, 3}[before]
				last := (before + len(v)) * 8 / 6
				out = append(out, text[first:last])
			}
		}
	}
	return out
}

// percentForms are the value in a URL, as the usual encoders write it. What others
// write, the view without escapes shows.
func percentEncodings(v string) []string {
	var out []string
	for _, s := range []string{url.QueryEscape(v), url.PathEscape(v)} {
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

// jsonForms are the value inside a JSON text that is itself a string: with and
// without escapes for HTML, for slashes, and for everything beyond ASCII.
func jsonEncodings(v string) []string {
	if !utf8.ValidString(v) {
		return nil
	}
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	html, err := json.Marshal(v)
	if err != nil || enc.Encode(v) != nil {
		return nil
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(plain.String(), "\n"), `"`), `"`)
	return []string{
		inner, string(html[1 : len(html)-1]),
		strings.ReplaceAll(inner, "/", `\/`), asciiOnly(inner),
	}
}

// asciiOnly escapes everything beyond ASCII, as many JSON encoders do.
func asciiOnly(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
