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

// Parts is Names, and for an unknown name without a close one, the known names of several words, some of
// which are close to its words in the same order: envelop_contract is a part of
// envelope_contract_violation.
func Parts(unknown string, known []string, n int) []string {
	if near := Names(unknown, known, n); len(near) > 0 {
		return near
	}
	type candidate struct {
		name     string
		distance int
	}
	words := split(unknown)
	if len(words) == 0 {
		return nil
	}
	whole := strings.Join(words, " ")
	var near []candidate
	for _, k := range known {
		all := split(k)
		for i := 0; i+len(words) <= len(all); i++ {
			if d := Distance(whole, strings.Join(all[i:i+len(words)], " ")); d <= max(1, len(whole)/6) {
				near = append(near, candidate{k, d})
			}
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range near {
		if !slices.Contains(out, c.name) && len(out) < n {
			out = append(out, c.name)
		}
	}
	return out
}

// split returns the words of a name.
func split(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '.' || r == '-' || r == ' ' })
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
