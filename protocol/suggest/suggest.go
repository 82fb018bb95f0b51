// Package suggest finds known names that are close to an unknown one.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns at most n of the known names that are close to the unknown one, the closest first.
func Names(unknown string, known []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	unknown = strings.ToLower(unknown)
	var all []candidate
	for _, k := range known {
		distance := Distance(unknown, strings.ToLower(k))
		if unknown != "" && strings.Contains(strings.ToLower(k), unknown) {
			distance = min(distance, 1)
		}
		if distance <= max(2, len(unknown)/3) {
			all = append(all, candidate{k, distance})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	out := make([]string, 0, n)
	for _, k := range all[:min(n, len(all))] {
		out = append(out, k.name)
	}
	return out
}

// Distance counts the bytes to insert, delete or replace (Levenshtein).
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
