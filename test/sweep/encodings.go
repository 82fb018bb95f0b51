// Package sweep plants secrets in everything a caller or a model can send, and searches every byte
// that leaves the host for them.
package sweep

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
)

// encoding is a way to write a secret.
type encoding struct {
	name string
	// write returns the secret as planted.
	write func(secret string) string
	// trace is the part that a leak would show, independent of the surrounding text.
	trace func(secret string) string
}

func same(name string, f func(string) string) encoding {
	return encoding{name: name, write: f, trace: f}
}

// base64At encodes the secret after n bytes, so that it starts at another bit of a character. The
// trace omits the characters shared with neighbours.
func base64At(name string, enc *base64.Encoding, n int) encoding {
	return encoding{
		name:  name,
		write: func(s string) string { return enc.EncodeToString([]byte(strings.Repeat("~", n) + s + "~~")) },
		trace: func(s string) string {
			text := enc.EncodeToString([]byte(strings.Repeat("~", n) + s + "~~~"))
			from := (n*8 + 5) / 6
			to := (n + len(s)) * 8 / 6
			return text[from:to]
		},
	}
}

func quoted(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(s) // a string
	return strings.TrimSuffix(strings.TrimSpace(b.String())[1:], `"`)
}

func eachByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func eachUnit(s, format string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, format, u)
	}
	return b.String()
}

// encodings lists the encodings that the redactor supports.
var encodings = []encoding{
	same("as it is", func(s string) string { return s }),
	base64At("base64, first place", base64.StdEncoding, 0), base64At("base64, second place", base64.StdEncoding, 1), base64At("base64, third place", base64.StdEncoding, 2),
	base64At("base64url, first place", base64.URLEncoding, 0), base64At("base64url, second place", base64.URLEncoding, 1), base64At("base64url, third place", base64.URLEncoding, 2),
	base64At("base64 without padding", base64.RawStdEncoding, 0), base64At("base64url without padding", base64.RawURLEncoding, 1),
	same("hex", func(s string) string { return hex.EncodeToString([]byte(s)) }),
	same("hex in capitals", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }),
	same("in a query", url.QueryEscape), same("in a path", url.PathEscape),
	same("percent, every byte", func(s string) string { return eachByte(s, "%%%02X") }),
	same("percent, every byte, small", func(s string) string { return eachByte(s, "%%%02x") }),
	same("in JSON", func(s string) string { return quoted(s, false) }), same("in JSON for HTML", func(s string) string { return quoted(s, true) }),
	same("in JSON with slashes", func(s string) string { return strings.ReplaceAll(quoted(s, false), "/", `\/`) }),
	{
		name:  "JSON in JSON",
		write: func(s string) string { b, _ := json.Marshal(map[string]string{"inner": s}); return string(b) },
		trace: func(s string) string { return quoted(s, true) },
	},
	same("in a JSON pointer", func(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }),
	same("JSON escapes, every character", func(s string) string { return eachUnit(s, `\u%04x`) }),
	same("JSON escapes in capitals, every character", func(s string) string { return eachUnit(s, `\u%04X`) }),
	same("between other letters", func(s string) string { return "xx" + s + "yy" }),
}
