package judge

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// small returns the value of a number written as a short integer.
func small(n json.Number) (int64, bool) {
	if len(n) > 18 {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

// isInteger reports whether a number has no fraction, in any notation.
func isInteger(n json.Number) bool {
	if !strings.ContainsAny(string(n), ".eE") {
		return true
	}
	text := decimal(n)
	_, power, _ := strings.Cut(text, "e")
	return !strings.HasPrefix(power, "-")
}

// decimal renders a number as digits and a power of ten, so that 1, 1.0 and 1e0 are equal. The
// exponent
// is within limits.
func decimal(n json.Number) string {
	text := string(n)
	if !strings.ContainsAny(text, ".eE") && !strings.HasSuffix(text, "0") {
		return text // nearly always
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

// fractionPrice is the cost of creating a fraction, digitPrice that of each digit and power of ten.
const (
	fractionPrice = 60
	digitPrice    = 2
)

// fraction returns the exact value of a number; nil if the budget is exhausted.
func (r *run) fraction(n json.Number, other *big.Rat) *big.Rat {
	digits := len(n) + (other.Num().BitLen()+other.Denom().BitLen())/4
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

// compare compares a number with a limit of the schema.
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

// near compares a short number with an integer limit. It returns 0 if they are so close that
// rounding could make them equal. Rounding never changes the order of a number and one that a
// float64 represents exactly.
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
	// Reducing a quotient of long numbers takes several times as long.
	if f == nil || !r.pay(fractionPrice+digitPrice*(f.Num().BitLen()+f.Denom().BitLen()+of.Num().BitLen()+of.Denom().BitLen())) {
		return false
	}
	return f.Quo(f, of).IsInt()
}
