package sample

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// option is one of several things to choose from: the weights of the words that are about it.
type option map[string]int

func newOption(label, about string) option {
	o := option{}
	for _, s := range stems(about) {
		o[s] = 1
	}
	for _, s := range stems(label) {
		o[s] = 3
	}
	return o
}

// option describes a value by its label, and by its schemas' titles, descriptions, values and members.
func (w want) option(label string) option {
	var about string
	for _, s := range w.all {
		label += " " + s.Title + " " + text(values(s))
		about += " " + s.Description
		for name, p := range s.Properties {
			label += " " + text(values(p))
			about += " " + name + " " + p.Description
		}
	}
	return newOption(label, about)
}

// values returns the only values that a schema allows; nil for others.
func values(s *jsonschema.Schema) []any {
	switch {
	case s.Const != nil:
		return []any{*s.Const}
	case s.Enum != nil:
		return s.Enum.Values
	default:
		return nil
	}
}

// score adds up the weights of the source's words. A word that all options have does not count:
// prompts often list the choices.
func (s source) score(options []option) []int {
	having := map[string]int{}
	for _, o := range options {
		for stem := range o {
			having[stem]++
		}
	}
	scores := make([]int, len(options))
	for i, o := range options {
		for stem, weight := range o {
			if s.stems[stem] && (len(options) == 1 || having[stem] < len(options)) {
				scores[i] += weight
			}
		}
	}
	return scores
}

// pick writes the value of an enum that the input mentions. A description often explains values, as
// in "billing: charges and refunds. delivery: parcels.": what follows a value is about it. If no word
// decides, it is a neutral value, and null if there is no other.
func (g *generator) pick(w want, at place, list []any) error {
	var about string
	for _, s := range w.all {
		about += strings.ToLower(s.Description) + "\n"
	}
	if err := g.spend(len(list) * (1 + len(about)/256)); err != nil { // each is read
		return err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return at.used[text(v)] || !w.holds(v) })
	if len(list) == 0 {
		return unfit("no value satisfies the schema of /" + at.path)
	}
	options := make([]option, len(list))
	for i, v := range list {
		label := strings.ToLower(strings.Trim(text(v), `"`))
		_, follows, _ := strings.Cut(about, label+":")
		follows, _, _ = strings.Cut(follows, ".")
		options[i] = newOption(label, follows)
	}
	scores := g.source.score(options)
	for i, v := range list {
		scores[i] *= 2
		if v == nil {
			scores[i] = -1
		} else if slices.Contains([]any{"other", "none", "unknown", "normal", "medium"}, v) {
			scores[i]++
		}
	}
	g.out.WriteString(text(list[slices.Index(scores, slices.Max(scores))]))
	return nil
}

// order returns the branches of a union in the order in which to try them: the one that the input
// mentions first and null last, or the shallowest first.
func (g *generator) order(union []*jsonschema.Schema, at place) []*jsonschema.Schema {
	var branches []*jsonschema.Schema
	var wants []want
	var options []option
	for _, s := range union {
		var w want
		if g.add(&w, 0, s) == nil {
			branches, wants, options = append(branches, s), append(wants, w), append(options, w.option(""))
		}
	}
	scores := map[*jsonschema.Schema]int{}
	for i, score := range g.source.score(options) {
		kinds := wants[i].kinds()
		switch last := kinds[len(kinds)-1]; {
		case at.depth > roomy:
			score = 1000*slices.Index(allKinds, last) - len(wants[i].required())
		case kinds[0] == "null":
			score = -1
		}
		scores[branches[i]] = score
	}
	slices.SortStableFunc(branches, func(a, b *jsonschema.Schema) int { return scores[b] - scores[a] })
	return branches
}
