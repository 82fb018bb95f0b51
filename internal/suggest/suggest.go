// Package suggest suggests names for one that is not known.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// Names are those of known that somebody may have meant who asked for another: at
// most n, the nearest first.
func Names(asked string, known []string, n int) []string {
	type candidate struct {
		name string
		far  int
	}
	asked = strings.ToLower(asked)
	var all []candidate
	for _, k := range known {
		far := Distance(asked, strings.ToLower(k))
		if asked != "" && strings.Contains(strings.ToLower(k), asked) {
			far = min(far, 1)
		}
		if far <= max(2, len(asked)/3) {
			all = append(all, candidate{k, far})
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

// Distance is how many bytes must be put in, taken out or replaced (Levenshtein).
func Distance(a, b string) int {
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
