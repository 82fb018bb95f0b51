package sample

import (
	"slices"
	"strings"
)

// How much a word of the subject says for an alternative, by where the
// alternative has it.
const (
	weightLabel   = 8 // in its name or value
	weightRelated = 4 // among the words that speak of its name
	weightAbout   = 3 // in its title or description
	weightInside  = 1 // anywhere in the rest of its schema
)

// alternative is one of several things to choose from.
type alternative struct {
	label string
	// words maps a stem to what it says for this alternative.
	words map[string]int
}

func newAlternative(label string) *alternative {
	a := &alternative{label: label, words: map[string]int{}}
	for _, s := range stems(label) {
		a.add(s, weightLabel)
		for _, r := range related[s] {
			a.add(r, weightRelated)
		}
	}
	return a
}

// about notes the words of a text; the strongest place of a word counts.
func (a *alternative) about(text string, weight int) {
	for _, s := range stems(text) {
		a.add(s, weight)
	}
}

func (a *alternative) add(stem string, weight int) {
	a.words[stem] = max(a.words[stem], weight)
}

// rank scores the alternatives by the words of the subject. A word that all of
// them have says nothing: prompts often list the choices.
func (g *generator) rank(list []*alternative) []int {
	scores := make([]int, len(list))
	for i, a := range list {
		for s, weight := range a.words {
			if g.source.stems[s] {
				scores[i] += weight - common(list, s)
			}
		}
	}
	return scores
}

// common is what a word says for every alternative.
func common(list []*alternative, stem string) int {
	if len(list) == 1 {
		return 0
	}
	least := list[0].words[stem]
	for _, a := range list[1:] {
		if least == 0 {
			break
		}
		least = min(least, a.words[stem])
	}
	return least
}

// choose picks the index of the alternative the subject speaks of most. With no
// word for any, a neutral label is taken; a tie goes by the hash of the place.
func (g *generator) choose(list []*alternative, at place) int {
	scores := g.rank(list)
	top := slices.Max(scores)
	var best []int
	for i, s := range scores {
		switch {
		case s < top:
		case top == 0 && neutral[strings.ToLower(list[i].label)]:
			return i
		default:
			best = append(best, i)
		}
	}
	return best[g.hash(at)%uint64(len(best))]
}

// mentioned reports whether the subject speaks of the thing at all.
func (g *generator) mentioned(a *alternative) bool {
	return g.rank([]*alternative{a})[0] > 0
}

// labels are the alternatives of an enum. Descriptions often explain the values
// one after the other ("billing: invoices and refunds. technical: ..."): the words
// after a value, up to the next one, count for it.
func labels(values []any, description string) []*alternative {
	list := make([]*alternative, len(values))
	var starts []int
	lower := strings.ToLower(description)
	for i, v := range values {
		list[i] = newAlternative(labelOf(v))
		at := -1
		if s, ok := v.(string); ok && s != "" {
			at = strings.Index(lower, strings.ToLower(s))
		}
		starts = append(starts, at)
	}
	for i, from := range starts {
		if from < 0 {
			continue
		}
		to := len(lower)
		for _, s := range starts {
			if s > from {
				to = min(to, s)
			}
		}
		list[i].about(lower[from:to], weightAbout)
	}
	return list
}

func labelOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return key(v)
}
