package redact

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// maxEncoded is the length of the longest value whose encodings are matched, in bytes. The
// automaton grows with the total size of all encodings. A longer value is a document rather
// than a credential, and is only matched unencoded.
const maxEncoded = 4096

// encodings returns the patterns of a value: the value itself, and its base64, hex, percent
// and JSON encodings.
func encodings(v string) []string {
	out := make([]string, 0, 20)
	if utf8.ValidString(v) { // replacing a part of a rune would leave invalid UTF-8
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

// pointerEncodings returns texts as member names in a JSON pointer, as in error paths (RFC
// 6901 §3).
func pointerEncodings(texts []string) []string {
	name := func(s string) string { return jsonpointer.Escape(s) }
	var out []string
	for _, s := range texts {
		if strings.ContainsAny(s, "~/") {
			// Twice, since a member name may be a JSON pointer. The slash may already be
			// escaped.
			out = append(out, name(s), name(name(s)), strings.ReplaceAll(s, "~", "~0"))
		}
	}
	return out
}

// unescapedEncodings returns a value as viewUnescaped shows it. If the value contains
// escapes, they are undone, or kept if each of their characters was escaped. Spaces may be
// plus signs, as in a query. The result for a value such as pa%ffss may be invalid UTF-8.
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

// viewEncodings returns the patterns of a value for each view.
func viewEncodings(v string) (out [viewCount][]string) {
	if len(v) > maxEncoded {
		return out
	}
	out[viewUnescaped] = unescapedEncodings(v)
	// Escapes may be nested in escapes of another kind. A view undoes each character once.
	for _, text := range slices.Concat(percentEncodings(v), jsonEncodings(v), pointerEncodings(out[viewUnescaped])) {
		if bare := strings.ReplaceAll(text, `\`, ""); len(bare) >= MinLength && !slices.Contains(out[viewUnescaped], bare) {
			out[viewUnescaped] = append(out[viewUnescaped], bare)
		}
	}
	out[viewBase64] = base64Encodings(v)
	out[viewHex] = []string{hex.EncodeToString([]byte(v))}
	return out
}

// base64Encodings returns the parts of a base64 text that the value alone determines, for
// each of its three alignments in a group of three bytes. Characters that also have bits of
// a neighbour are left out. The escaped value is encoded too, since JSON documents are
// base64-encoded whole, such as a credentials file with the line breaks of a key.
func base64Encodings(v string) []string { return base64Of(append(jsonEncodings(v), v)) }

// base64Of returns the base64 of texts, without duplicates.
func base64Of(texts []string) []string {
	slices.Sort(texts)
	var out []string
	for _, v := range slices.Compact(texts) {
		for before := range 3 {
			text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), v...))
			first := [...]int{0, 2, 3}[before]
			last := (before + len(v)) * 8 / 6
			out = append(out, text[first:last])
			if url := urlAlphabet.Replace(text[first:last]); url != text[first:last] {
				out = append(out, url)
			}
		}
	}
	return out
}

// urlAlphabet converts base64 to base64url.
var urlAlphabet = strings.NewReplacer("+", "-", "/", "_")

// wideEncodings returns the base64 of a value in UTF-16. It is searched in viewBase64 only, where
// findUTF16 finds it: it is long.
func wideEncodings(v string) []string {
	if len(v) > maxEncoded {
		return nil
	}
	return base64Of(utf16Encodings(v))
}

// utf16Encodings returns the bytes of a value in UTF-16, as PowerShell and Windows write it before
// base64. Without the outermost zero bytes both byte orders are the same for most values.
func utf16Encodings(v string) []string {
	if !utf8.ValidString(v) {
		return nil
	}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(v)) {
		little = binary.LittleEndian.AppendUint16(little, u)
		big = binary.BigEndian.AppendUint16(big, u)
	}
	return []string{strings.Trim(string(little), "\x00"), strings.Trim(string(big), "\x00")}
}

// percentEncodings returns the value as usual URL encoders write it. viewUnescaped finds
// other encodings.
func percentEncodings(v string) []string {
	var out []string
	for _, s := range []string{url.QueryEscape(v), url.PathEscape(v)} {
		out = append(out, s, lowerEscapes(s))
	}
	return out
}

// lowerEscapes puts the hex digits of percent escapes in lower case.
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

// jsonEncodings returns the value as a JSON string in a text: with and without escapes for
// HTML, for slashes, and for characters beyond ASCII.
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

// asciiOnly escapes all characters beyond ASCII, as many JSON encoders do.
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
