package channel

import (
	"encoding/json"
	"math"
	"strconv"
)

// add sums two numbers: integers exactly as long as they fit, others as doubles. ok is false if
// either is not a number or the sum exceeds the range of JSON numbers.
func add(a, b json.RawMessage) (sum json.RawMessage, ok bool) {
	x, isX := number(a)
	y, isY := number(b)
	if !isX || !isY {
		return nil, false
	}
	i, errI := x.Int64()
	j, errJ := y.Int64()
	if errI == nil && errJ == nil && fits(i, j) {
		return strconv.AppendInt(nil, i+j, 10), true
	}
	f, errF := x.Float64()
	g, errG := y.Float64()
	if errF != nil || errG != nil || math.IsInf(f+g, 0) {
		return nil, false
	}
	out, err := json.Marshal(f + g)
	return out, err == nil
}

// fits reports whether the sum of two integers does not overflow.
func fits(a, b int64) bool {
	if b >= 0 {
		return a <= math.MaxInt64-b
	}
	return a >= math.MinInt64-b
}

// number reads a JSON number.
func number(v json.RawMessage) (json.Number, bool) {
	var n json.Number
	if len(v) == 0 || v[0] == '"' || json.Unmarshal(v, &n) != nil || n == "" {
		return "", false
	}
	return n, true
}
