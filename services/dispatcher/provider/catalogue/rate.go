package catalogue

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Rate is a price per million tokens in millionths of a US dollar. It is written in dollars with at
// most six decimals and stays exact.
type Rate int64

// dollar is one dollar in millionths.
const dollar = 1_000_000

// maxRate limits a price in dollars, as the document's schema does.
const maxRate = 1_000_000

// UnmarshalJSON reads a number of dollars.
func (r *Rate) UnmarshalJSON(b []byte) error {
	v, ok := new(big.Rat).SetString(string(b))
	if !ok || strings.ContainsAny(string(b), `"/_`) {
		return errors.New("want a number of dollars, such as 1.25")
	}
	v.Mul(v, big.NewRat(dollar, 1))
	if !v.IsInt() || v.Sign() < 0 || v.Num().Cmp(big.NewInt(maxRate*dollar)) > 0 {
		return errors.New("want dollars from 0 to 1000000 with at most six decimals")
	}
	*r = Rate(v.Num().Int64())
	return nil
}

// MarshalJSON writes a number of dollars.
func (r Rate) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// String formats the rate in dollars without trailing zeros.
func (r Rate) String() string {
	whole, part := strconv.FormatInt(int64(r)/dollar, 10), int64(r)%dollar
	if part == 0 {
		return whole
	}
	decimals := strconv.FormatInt(dollar+part, 10)[1:]
	return whole + "." + strings.TrimRight(decimals, "0")
}
