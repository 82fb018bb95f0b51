package prompt

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minMasked is the shortest secret that is masked outside its own placeholder. A shorter one would
// match ordinary words (OpenWOP envelope contract §11).
const minMasked = 8

// newMasker returns a function that replaces the values of secrets by their markers anywhere in a
// text. A template or an input may contain the value of another variable. The redactor also checks
// the event; masking here ensures that the hash is of the recorded text.
func newMasker(secrets []*secret) func(string) string {
	type form struct{ text, marker string }
	var forms []form
	for _, s := range secrets {
		if len(s.value) < minMasked {
			continue
		}
		for _, f := range encodings(s.value) {
			forms = append(forms, form{f, s.marker()})
		}
	}
	// Longest first, so that no part is left of a secret that contains another.
	slices.SortFunc(forms, func(a, b form) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.marker, b.marker))
	})
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f.text, f.marker)
	}
	return strings.NewReplacer(pairs...).Replace
}

// encodings returns a value and its common encodings.
func encodings(value string) []string {
	raw := []byte(value)
	lower := hex.EncodeToString(raw)
	out := []string{value, lower, strings.ToUpper(lower), url.QueryEscape(value), url.PathEscape(value)}
	for _, e := range []*base64.Encoding{
		base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding,
	} {
		out = append(out, e.EncodeToString(raw))
	}
	plain := quoted(value)
	html, err := json.Marshal(value)
	if err != nil { // a string
		html = plain
	}
	out = append(out, string(plain[1:len(plain)-1]), string(html[1:len(html)-1]))
	slices.Sort(out)
	return slices.Compact(out)
}
