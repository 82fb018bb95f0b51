package catalogue

import (
	"cmp"
	"slices"
	"strings"
)

// Near suggests names, as PROVIDER/MODEL, that somebody may have meant who asked
// for a model that is not known: at most n, the nearest first.
func (c *Catalogue) Near(provider, model string, n int) []string {
	type candidate struct {
		name string
		far  int
	}
	asked := strings.ToLower(provider + "/" + model)
	var all []candidate
	for _, e := range c.doc.Models {
		for _, known := range e.names() {
			far := distance(asked, strings.ToLower(e.Provider+"/"+known))
			if e.Provider != provider { // the right model elsewhere is worth a mention
				far = min(far, 1+distance(strings.ToLower(model), strings.ToLower(known)))
			}
			if far <= max(2, len(model)/3) {
				all = append(all, candidate{e.Provider + "/" + known, far})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name))
	})
	out := make([]string, 0, n)
	for _, k := range all[:min(n, len(all))] {
		out = append(out, k.name)
	}
	return out
}

// distance is how many bytes must be put in, taken out or replaced (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
