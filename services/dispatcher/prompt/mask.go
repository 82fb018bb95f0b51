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

// minMasked is the shortest value that is looked for where nobody put it: a shorter one
// would be found in ordinary words (OpenWOP envelope contract §11).
const minMasked = 8

// newMasker puts the marks of secrets in the place of their values, however those came
// into a text: a template or an input may hold what another variable fetched. The
// redactor sees the event as well; this is for the hash, which has to be of what shows.
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
	// The longest first, so that nothing is left of a secret that contains another.
	slices.SortFunc(forms, func(a, b form) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.marker, b.marker))
	})
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f.text, f.marker)
	}
	return strings.NewReplacer(pairs...).Replace
}

// encodings are a value and its common encodings.
func encodings(value string) []string {
	raw := []byte(value)
	lower := hex.EncodeToString(raw)
	out := []string{value, lower, strings.ToUpper(lower), url.QueryEscape(value), url.PathEscape(value)}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
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
