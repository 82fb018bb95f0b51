package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// Numbers are compared exactly, as fractions of big integers. A few bytes such as 1e999999999 would
// need gigabytes, so numbers far outside the range of any program are rejected first. A double
// reaches
// 1e308.
const (
	maxDigits   = 400
	maxExponent = 400
)

// hugeNumber is the reason for rejecting a number.
const hugeNumber = "the number is out of bounds; at most 400 digits and an exponent within -400..400 are taken"

// isHuge reports whether a number literal is out of bounds.
func isHuge(n json.Number) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if len(mantissa) > maxDigits {
		return true
	}
	if exponent == "" {
		return false
	}
	e, err := strconv.Atoi(exponent)
	return err != nil || e < -maxExponent || e > maxExponent
}

// findHugeNumber returns the path of the first number in v that is out of bounds. Nearly no
// document has one, so members are sorted only then.
func findHugeNumber(v any) (path string, found bool) {
	if !hasHugeNumber(v) {
		return "", false
	}
	return firstHugeNumber(v)
}

func firstHugeNumber(v any) (path string, found bool) {
	switch v := v.(type) {
	case json.Number:
		return "", isHuge(v)
	case []any:
		for i, item := range v {
			if path, found := firstHugeNumber(item); found {
				return jsonpointer.Of(strconv.Itoa(i)) + path, true
			}
		}
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if path, found := firstHugeNumber(v[name]); found {
				return jsonpointer.Of(name) + path, true
			}
		}
	}
	return "", false
}

func hasHugeNumber(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return isHuge(v)
	case []any:
		return slices.ContainsFunc(v, hasHugeNumber)
	case map[string]any:
		for _, item := range v {
			if hasHugeNumber(item) {
				return true
			}
		}
	}
	return false
}
