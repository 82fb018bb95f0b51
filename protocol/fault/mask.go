package fault

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// masked replaces text that looks like a credential.
const masked = "[REDACTED]"

// credential matches the form of a secret: a signed token of three parts, a key with a known
// prefix, or a long run of base64.
var credential = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*|\b[sph]k[_-][A-Za-z0-9_-]{8,}|[A-Za-z0-9+]{32,}={0,2}`)

// wordEnds are the characters that end a word.
const wordEnds = " \t\r\n\"'`,;:()[]{}"

// mask replaces text that looks like a credential. Callers sometimes put a secret in the wrong
// place, such as a member name, and an error that reports the path must not repeat it (OpenWOP host
// contract §2.0, leakage). The rest of the word is masked too: it may be the rest of the secret,
// which a search for the whole secret would no longer match.
func mask(text string) string {
	var out strings.Builder
	done := 0
	for _, at := range credential.FindAllStringIndex(text, -1) {
		if at[0] < done || !isCredential(text[at[0]:at[1]]) {
			continue
		}
		out.WriteString(text[done:at[0]])
		out.WriteString(masked)
		done = len(text)
		if n := strings.IndexAny(text[at[1]:], wordEnds); n >= 0 {
			done = at[1] + n
		}
	}
	out.WriteString(text[done:])
	return out.String()
}

// isCredential excludes long words and long numbers.
func isCredential(found string) bool {
	named := strings.ContainsAny(found, "_-.")
	return named || strings.ContainsAny(found, "0123456789") && strings.Trim(found, "0123456789") != ""
}

// Masked returns the error as callers may see it, with credentials masked.
func (e *Error) Masked() *Error {
	out := *e.whole()
	out.Message = mask(out.Message)
	out.Details = maskMembers(plain(out.Details))
	return &out
}

// plain converts details to their JSON form. Values that JSON cannot represent are dropped, as in
// the envelope.
func plain(details map[string]any) map[string]any {
	if len(details) == 0 {
		return nil
	}
	b, err := json.Marshal(details)
	if err != nil {
		return nil
	}
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}

func maskMembers(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for name, v := range m {
		out[mask(name)] = maskValue(v)
	}
	return out
}

func maskValue(v any) any {
	switch v := v.(type) {
	case string:
		return mask(v)
	case []any:
		for i := range v {
			v[i] = maskValue(v[i])
		}
	case map[string]any:
		return maskMembers(v)
	}
	return v
}
