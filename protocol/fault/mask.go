package fault

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// masked stands for what looks like a credential.
const masked = "[REDACTED]"

// credential is the shape of a secret: a signed token of three parts, a key that
// its prefix names, or a long run of base64.
var credential = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*|\b[sph]k[_-][A-Za-z0-9_-]{8,}|[A-Za-z0-9+]{32,}={0,2}`)

// wordEnds are the signs at which a word of an error ends.
const wordEnds = " \t\r\n\"'`,;:()[]{}"

// mask takes out of a text what looks like a credential. Callers put one where
// it does not belong, as in the name of a member, and an error that names the
// place must not repeat it (OpenWOP host contract §2.0, leakage). The rest of the
// word goes with it: it may be the rest of a secret, which nobody who knows the
// secret would find any more.
func mask(text string) string {
	var out strings.Builder
	done := 0
	for _, at := range credential.FindAllStringIndex(text, -1) {
		if at[0] < done || !secretive(text[at[0]:at[1]]) {
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

// secretive tells a credential from a long word, or a long number.
func secretive(found string) bool {
	named := strings.ContainsAny(found, "_-.")
	return named || strings.ContainsAny(found, "0123456789") && strings.Trim(found, "0123456789") != ""
}

// Masked is the error as callers may see it: without what looks like a credential.
func (e *Error) Masked() *Error {
	out := *e
	out.Message = mask(e.Message)
	out.Details = maskMembers(plain(e.Details))
	return &out
}

// plain turns details into what JSON makes of them. What JSON cannot say is left
// out, as it is of the envelope.
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
