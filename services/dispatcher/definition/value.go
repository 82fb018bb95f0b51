package definition

import (
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// parseExpr reads a value that was checked when it came in.
func parseExpr(raw json.RawMessage) any {
	v, err := strictjson.Value(raw, strictjson.Limits{MaxBytes: len(raw) + 1, MaxDepth: 256})
	if err != nil {
		return nil
	}
	return v
}

// lookup follows a dot path into a node's outputs: names of members, and indexes of
// arrays. A leading "output." is passed over where no port is called so (OpenWOP
// host contract §5.2).
func lookup(outputs objectValue, path string) (any, bool) {
	if v, found := follow(outputs, path); found {
		return v, true
	}
	if rest, ok := strings.CutPrefix(path, "output."); ok {
		return follow(outputs, rest)
	}
	return nil, false
}

func follow(outputs objectValue, path string) (any, bool) {
	port, rest, more := strings.Cut(path, ".")
	raw, found := outputs[port]
	if !found {
		return nil, false
	}
	v := parseExpr(raw)
	for more {
		var name string
		name, rest, more = strings.Cut(rest, ".")
		if v, found = stepRef(v, name); !found {
			return nil, false
		}
	}
	return v, true
}

func stepRef(v any, name string) (any, bool) {
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
		return ok && (a == b || decimal(string(a)) == decimal(string(b)))
	default:
		return a == b
	}
}

// number is a decimal in one way: no zeros at either end, 0.digits times a power of
// ten. It takes numbers of any size without making them.
type number struct {
	negative bool
	digits   string
	exponent int64
	text     string // of a number whose exponent is beyond all measure
}

func decimal(text string) number {
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
