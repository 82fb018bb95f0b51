package runlog

import (
	"cmp"
	"slices"
)

// Span is a range of positions, both ends included.
type Span struct{ From, To uint64 }

// Except returns the parts of spans, which are in order and do not overlap, that are in none of
// others. It sorts others.
func Except(spans, others []Span) (rest []Span) {
	slices.SortFunc(others, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range spans {
		for len(others) > 0 && others[0].To < s.From {
			others = others[1:]
		}
		for _, o := range others {
			if o.From > s.To {
				break
			}
			if o.From > s.From {
				rest = append(rest, Span{s.From, o.From - 1})
			}
			s.From = o.To + 1
		}
		if s.From <= s.To {
			rest = append(rest, s)
		}
	}
	return rest
}
