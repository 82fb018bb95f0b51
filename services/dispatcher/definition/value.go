package definition

import (
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// parseValue parses a value that was validated before.
func parseValue(raw json.RawMessage) any {
	v, err := strictjson.Value(raw, strictjson.Limits{MaxBytes: len(raw) + 1, MaxDepth: 256})
	if err != nil {
		return nil
	}
	return v
}

// lookupPath follows a dot path into a node's outputs: names of members and indexes of arrays. A
// leading "output." is skipped if no port has that name (OpenWOP host contract §5.2).
func lookupPath(outputs object, path string) (any, bool) {
	if v, found := followPath(outputs, path); found {
		return v, true
	}
	if rest, ok := strings.CutPrefix(path, "output."); ok {
		return followPath(outputs, rest)
	}
	return nil, false
}

func followPath(outputs object, path string) (any, bool) {
	port, rest, more := strings.Cut(path, ".")
	raw, found := outputs[port]
	if !found {
		return nil, false
	}
	v := parseValue(raw)
	for more {
		var name string
		name, rest, more = strings.Cut(rest, ".")
		if v, found = stepInto(v, name); !found {
			return nil, false
		}
	}
	return v, true
}

func stepInto(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		member, found := v[name]
		return member, found
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// equal is deep equality of JSON values: objects without order, numbers by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if w, has := b[name]; !has || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || parseDecimal(string(a)) == parseDecimal(string(b)))
	default:
		return a == b
	}
}

// number is the normal form of a decimal: 0.digits times a power of ten, without zeros at either
// end. It handles numbers of any size.
type number struct {
	negative bool
	digits   string
	exponent int64
	text     string // of a number whose exponent does not fit
}

func parseDecimal(text string) number {
	var n number
	rest, negative := strings.CutPrefix(text, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(rest), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if power != "" {
		e, err := strconv.ParseInt(power, 10, 48)
		if err != nil {
			return number{text: text}
		}
		n.exponent = e
	}
	digits := whole + fraction
	n.exponent += int64(len(whole))
	trimmed := strings.TrimLeft(digits, "0")
	n.exponent -= int64(len(digits) - len(trimmed))
	n.digits = strings.TrimRight(trimmed, "0")
	if n.digits == "" {
		return number{}
	}
	n.negative = negative
	return n
}
