package judge

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// small gives the value of a number that is written as a short integer.
func small(n json.Number) (int64, bool) {
	if len(n) > 18 {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

// isInteger reports whether a number has no fraction, however it is written.
func isInteger(n json.Number) bool {
	if !strings.ContainsAny(string(n), ".eE") {
		return true
	}
	text := decimal(n)
	_, power, _ := strings.Cut(text, "e")
	return !strings.HasPrefix(power, "-")
}

// decimal writes a number as its digits and a power of ten, so that 1, 1.0 and 1e0
// are the same text. The exponent is within bounds.
func decimal(n json.Number) string {
	text := string(n)
	if !strings.ContainsAny(text, ".eE") && !strings.HasSuffix(text, "0") {
		return text // hardly ever anything else
	}
	digits, power, _ := strings.Cut(strings.ToLower(text), "e")
	exponent, _ := strconv.Atoi(cmp.Or(strings.TrimPrefix(power, "+"), "0"))
	sign := ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	exponent += len(digits) - len(trimmed) - len(fraction)
	if exponent == 0 {
		return sign + trimmed
	}
	return sign + trimmed + "e" + strconv.Itoa(exponent)
}

// fractionPrice is what it takes to make a fraction of a number, and digitPrice what
// each of its digits and powers of ten adds.
const (
	fractionPrice = 60
	digitPrice    = 2
)

// fraction gives the exact value of a number; nil when the budget does not reach.
func (r *run) fraction(n json.Number, beside *big.Rat) *big.Rat {
	digits := len(n) + (beside.Num().BitLen()+beside.Denom().BitLen())/4
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		power, _ := strconv.Atoi(strings.TrimPrefix(string(n[i+1:]), "+"))
		digits += max(power, -power)
	}
	if !r.pay(fractionPrice + digitPrice*digits) {
		return nil
	}
	f, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return f
}

// compare orders a number and a bound of the schema.
func (r *run) compare(n json.Number, bound *big.Rat) int {
	if i, ok := small(n); ok && bound.IsInt() && bound.Num().IsInt64() {
		return cmp.Compare(i, bound.Num().Int64())
	}
	if order := near(n, bound); order != 0 {
		return order
	}
	f := r.fraction(n, bound)
	if f == nil {
		return 0
	}
	return f.Cmp(bound)
}

// near orders a number that is not too long and a bound that is an integer, unless they are so near
// that rounding could make them one: 0. Rounding never changes the order of a number and one that a
// float64 holds exactly.
func near(n json.Number, bound *big.Rat) int {
	const exact = 1 << 53
	if len(n) > 32 || !bound.IsInt() || !bound.Num().IsInt64() {
		return 0
	}
	b := bound.Num().Int64()
	if f, err := strconv.ParseFloat(string(n), 64); err == nil && -exact <= b && b <= exact {
		return cmp.Compare(f, float64(b))
	}
	return 0
}

// multiple reports whether a number is a multiple of another.
func (r *run) multiple(n json.Number, of *big.Rat) bool {
	if i, ok := small(n); ok && of.IsInt() && of.Num().IsInt64() && of.Num().Int64() != 0 {
		return i%of.Num().Int64() == 0
	}
	f := r.fraction(n, of)
	// A quotient of long numbers is made shorter, which takes several times as long.
	if f == nil || !r.pay(fractionPrice+digitPrice*(f.Num().BitLen()+f.Denom().BitLen()+of.Num().BitLen()+of.Denom().BitLen())) {
		return false
	}
	return f.Quo(f, of).IsInt()
}
