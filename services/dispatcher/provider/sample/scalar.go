package sample

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// samples has a text for each format.
var samples = strings.Fields(`example.com sample@example.com https://example.com/sample 2026-01-01T00:00:00Z 2026-01-01
	00:00:00Z P1D 192.0.2.1 2001:db8::1 00000000-0000-4000-8000-000000000000 /sample 0 1.0.0`)

// text writes a string: a sentence of the input, or else a word of it, a sample, or a text made from
// the pattern.
func (g *generator) text(w want, at place) error {
	low, high := w.limits(func(s *jsonschema.Schema) (low, high *int) { return s.MinLength, s.MaxLength })
	if low > provider.MaxAnswerBytes {
		return tooLong()
	}
	s := g.sentence(at)
	if at.try > 0 {
		s = strconv.Itoa(at.try) + " " + s
	}
	if s = fit(s, low, high); !w.holds(s) {
		const costly = 1024 // steps to try the others
		if err := g.spend(costly); err != nil {
			return err
		}
		fits := func(s string) bool { // first the cheap test
			n := utf8.RuneCountInString(s)
			return low <= n && n <= high && w.holds(s)
		}
		candidates := slices.Concat(g.source.words, samples, w.woven(low, high))
		if i := slices.IndexFunc(candidates, fits); i >= 0 {
			s = candidates[i]
		}
	}
	g.out.WriteString(text(s))
	return nil
}

// fit makes a text as long as it must be, in characters. It cuts it after a word if there is one.
func fit(s string, low, high int) string {
	const filler = " sample"
	if missing := low - utf8.RuneCountInString(s); missing > 0 {
		s += strings.Repeat(filler, missing/len(filler)+1)
	}
	if utf8.RuneCountInString(s) <= high {
		return s
	}
	s = string([]rune(s)[:high])
	if i := strings.LastIndexByte(s, ' '); i > 0 && utf8.RuneCountInString(s[:i]) >= low {
		return s[:i]
	}
	return s
}

// sentence returns the next sentence of the input, or its first word with a digit for an id.
func (g *generator) sentence(at place) string {
	switch name := " " + strings.ToLower(splitCamel(at.name)) + " "; {
	case name == " language ":
		return "en"
	case strings.Contains(name, " id ") || strings.Contains(name, " number "):
		if i := slices.IndexFunc(g.source.words, func(w string) bool { return strings.ContainsAny(w, "0123456789") }); i >= 0 {
			return g.source.words[i]
		}
	}
	g.told++
	return g.source.sentences[(g.told-1)%len(g.source.sentences)]
}

// number writes a number of the input, or else one near the lower bound.
func (g *generator) number(w want, at place, whole bool) error {
	low, high, step := w.span()
	if whole { // k*p/q is whole for every q-th k: the whole multiples are those of p
		step = new(big.Rat).SetInt(step.Num())
	}
	offset := new(big.Rat).Mul(step, big.NewRat(int64(max(at.try-1, 0)), 1))
	base := cmp.Or(low, big.NewRat(1, 1))
	candidates := []*big.Rat{new(big.Rat).Add(base, offset)}
	if at.try == 0 {
		candidates = slices.Concat(g.source.numbers, candidates)
	}
	if high != nil {
		middle := new(big.Rat).Add(base, high)
		candidates = append(candidates, middle.Quo(middle, big.NewRat(2, 1)), new(big.Rat).Sub(high, offset))
	}
	for _, x := range candidates {
		q := new(big.Rat).Quo(x, step)
		floor := new(big.Rat).SetInt(new(big.Int).Div(q.Num(), q.Denom()))
		floor.Mul(floor, step)
		for _, x := range []*big.Rat{x, floor, new(big.Rat).Add(floor, step)} {
			digits, _ := x.FloatPrec() // JSON numbers have denominators without factors but 2 and 5
			if n := json.Number(x.FloatString(digits)); w.holds(n) {
				g.out.WriteString(n.String())
				return nil
			}
		}
	}
	return unfit("no number is within the bounds of /" + at.path)
}

// span returns the tightest bounds, nil without one, and the step between numbers.
func (w want) span() (low, high, step *big.Rat) {
	step = big.NewRat(1, 1)
	for _, s := range w.all {
		for _, x := range []*big.Rat{s.Minimum, s.ExclusiveMinimum} {
			if x != nil && (low == nil || x.Cmp(low) > 0) {
				low = x
			}
		}
		for _, x := range []*big.Rat{s.Maximum, s.ExclusiveMaximum} {
			if x != nil && (high == nil || x.Cmp(high) < 0) {
				high = x
			}
		}
		if s.MultipleOf != nil {
			step = s.MultipleOf
		}
	}
	return low, high, step
}
