package jsontemplate

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// maxExponent is how large the exponent of a number may be that is compared: written out, others would fill the memory.
const maxExponent = 400

// exact reads a number as it is written, so that neither 0.1 nor what an int64 cannot hold is another one. ok is false
// for what is no number, and beyond maxExponent.
func exact(v any) (r *big.Rat, ok bool) {
	var written string
	switch v := v.(type) {
	case int:
		return big.NewRat(int64(v), 1), true
	case float64: // of a template
		written = strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		written = v.String()
	default:
		return nil, false
	}
	if _, exponent, has := strings.Cut(strings.ToLower(written), "e"); has {
		if e, err := strconv.Atoi(exponent); err != nil || e > maxExponent || e < -maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(written)
}

// integer is a whole number, however it is written.
func integer(v any) (i int64, whole bool) {
	r, is := exact(v)
	if !is || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// zero reports whether a number is: none of its digits counts.
func zero(n json.Number) bool {
	digits, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	return !strings.ContainsAny(digits, "123456789")
}

// formatted is a number of a document where it is printed: fmt knows it as text only.
type formatted json.Number

// Format takes the verbs of whole numbers where it is one, those of decimals, and else those of text.
func (n formatted) Format(s fmt.State, verb rune) {
	var as any = string(n)
	switch verb {
	case 'b', 'd', 'o', 'O', 'x', 'X':
		if r, is := exact(json.Number(n)); is && r.IsInt() {
			as = r.Num()
		}
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if f, err := json.Number(n).Float64(); err == nil {
			as = f
		}
	}
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), as)
}
