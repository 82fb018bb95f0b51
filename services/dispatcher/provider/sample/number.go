package sample

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// rational reads a JSON number exactly, so that multiples of 0.1 come out right.
// Numbers with a very large exponent are not taken: written out they would fill
// the memory.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	const most = 400
	if _, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok {
		if e, err := strconv.Atoi(exponent); err != nil || e > most || e < -most {
			return nil, false
		}
	}
	return new(big.Rat).SetString(n.String())
}

// count is a keyword that is a whole number of things; def when absent.
func (f *flat) count(name string, def int) int {
	r, ok := rational(f.values[name])
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return def
	}
	return int(min(r.Num().Int64(), 1<<40))
}

// span is what a schema allows a number to be.
type span struct {
	low, high             *big.Rat // nil without a bound
	lowExcept, highExcept bool     // the bound itself is not allowed
	step                  *big.Rat // nil without one
}

func spanOf(f *flat, whole bool) span {
	var s span
	s.low, s.lowExcept = bound(f, "minimum", "exclusiveMinimum", 1)
	s.high, s.highExcept = bound(f, "maximum", "exclusiveMaximum", -1)
	if m, ok := rational(f.values["multipleOf"]); ok && m.Sign() > 0 {
		s.step = m
	}
	switch {
	case whole && s.step == nil:
		s.step = big.NewRat(1, 1)
	case whole: // k*p/q is whole for every q-th k: the whole multiples are those of p
		s.step = new(big.Rat).SetInt(s.step.Num())
	}
	return s
}

// bound is the tighter of the two bounds on one side.
func bound(f *flat, inclusive, exclusive string, sign int) (*big.Rat, bool) {
	a, okA := rational(f.values[inclusive])
	b, okB := rational(f.values[exclusive])
	switch {
	case okA && okB:
		if b.Cmp(a)*sign >= 0 {
			return b, true
		}
		return a, false
	case okB:
		return b, true
	case okA:
		return a, false
	default:
		return nil, false
	}
}

func (s span) holds(x *big.Rat) bool {
	if s.low != nil && (x.Cmp(s.low) < 0 || s.lowExcept && x.Cmp(s.low) == 0) {
		return false
	}
	if s.high != nil && (x.Cmp(s.high) > 0 || s.highExcept && x.Cmp(s.high) == 0) {
		return false
	}
	return s.step == nil || new(big.Rat).Quo(x, s.step).IsInt()
}

// snap is the largest multiple of the step that is not above x.
func (s span) snap(x *big.Rat) *big.Rat {
	q := new(big.Rat).Quo(x, s.step)
	floor := new(big.Int).Div(q.Num(), q.Denom()) // Div rounds down for a positive divisor
	return new(big.Rat).Mul(new(big.Rat).SetInt(floor), s.step)
}

// written are the numbers of the subject.
var written = regexp.MustCompile(`\d+(?:\.\d+)?`)

// quantities are names of members whose number the text is likely to give.
var quantities = set("amount total price cost sum count quantity qty number order invoice age year days hours minutes size items")

// number makes a number: one that the subject gives, if the member's name is
// that of a quantity, else one that depends on the request.
func (g *generator) number(f *flat, at place, whole bool) (any, error) {
	s := spanOf(f, whole)
	for _, x := range g.candidates(s, at) {
		if s.step != nil && !s.holds(x) {
			x = s.snap(x)
			if !s.holds(x) {
				x = new(big.Rat).Add(x, s.step)
			}
		}
		if s.holds(x) {
			return decimal(x), nil
		}
	}
	return nil, unfit("no number is within the bounds of " + at.String())
}

// candidates are numbers to try, the most telling first.
func (g *generator) candidates(s span, at place) []*big.Rat {
	var list []*big.Rat
	if at.try > 0 && s.low != nil && s.step != nil {
		list = append(list, new(big.Rat).Add(s.low, new(big.Rat).Mul(s.step, big.NewRat(int64(at.try), 1))))
	}
	for _, w := range strings.Fields(strings.ToLower(splitCamel(at.name))) {
		if !quantities[w] {
			continue
		}
		for _, n := range g.source.find(written) {
			if x, ok := new(big.Rat).SetString(n); ok {
				list = append(list, x)
			}
		}
	}
	share := big.NewRat(int64(g.hash(at)%9)+1, 10) // 0.1 to 0.9
	ten := big.NewRat(10, 1)
	switch {
	case s.low != nil && s.high != nil:
		middle := new(big.Rat).Mul(new(big.Rat).Sub(s.high, s.low), share)
		list = append(list, middle.Add(middle, s.low), s.low, s.high)
	case s.low != nil:
		list = append(list, new(big.Rat).Add(s.low, new(big.Rat).Mul(share, ten)), s.low)
	case s.high != nil:
		list = append(list, new(big.Rat).Sub(s.high, new(big.Rat).Mul(share, ten)), s.high)
	default:
		list = append(list, new(big.Rat).Mul(share, ten))
	}
	return list
}

// decimal writes a number whose denominator has no factors but 2 and 5, as all
// made from JSON numbers have.
func decimal(x *big.Rat) json.Number {
	digits, _ := x.FloatPrec()
	return json.Number(x.FloatString(digits))
}
