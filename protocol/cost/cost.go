// Package cost holds the cost attributes of a call. The list is closed: all other attributes are
// dropped before they are exposed (OpenWOP host contract §10.2).
package cost

import (
	"encoding/json"
	"regexp"
	"strings"
)

// The names of the attributes.
const (
	Input     = "openwop.cost.tokens.input"
	Output    = "openwop.cost.tokens.output"
	Total     = "openwop.cost.tokens.total"
	USD       = "openwop.cost.usd"
	Currency  = "openwop.cost.currency"
	Estimated = "openwop.cost.estimated"
	Provider  = "openwop.cost.provider"
)

var (
	currencyForm = regexp.MustCompile(`^[A-Za-z]{3}$`)
	providerForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
)

// Attributes are cost attributes by name: int64, float64, bool or string.
type Attributes map[string]any

// Sanitize returns the members that are on the list and have valid values; nil if there are none.
func Sanitize(given json.RawMessage) Attributes {
	var members map[string]json.RawMessage
	if json.Unmarshal(given, &members) != nil {
		return nil
	}
	out := Attributes{}
	for name, read := range readers {
		if v, ok := read(members[name]); ok {
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// readers maps each attribute to its parser.
var readers = map[string]func(json.RawMessage) (any, bool){
	Input: count, Output: count, Total: count, USD: amount, Estimated: flag,
	Currency: matching(currencyForm), Provider: matching(providerForm),
}

func count(raw json.RawMessage) (any, bool) {
	var n *int64
	ok := json.Unmarshal(raw, &n) == nil && n != nil && *n >= 0
	if !ok {
		return nil, false
	}
	return *n, true
}

func amount(raw json.RawMessage) (any, bool) {
	var f *float64
	ok := json.Unmarshal(raw, &f) == nil && f != nil && *f >= 0
	if !ok {
		return nil, false
	}
	return *f, true
}

func flag(raw json.RawMessage) (any, bool) {
	var b *bool
	if json.Unmarshal(raw, &b) != nil || b == nil {
		return nil, false
	}
	return *b, true
}

func matching(form *regexp.Regexp) func(json.RawMessage) (any, bool) {
	return func(raw json.RawMessage) (any, bool) {
		var s string
		ok := json.Unmarshal(raw, &s) == nil && form.MatchString(s)
		return s, ok
	}
}

// Dollars returns the cost in US dollars; ok is false if there is none or it is in another
// currency.
func (a Attributes) Dollars() (usd float64, ok bool) {
	usd, ok = a[USD].(float64)
	currency, set := a[Currency].(string)
	return usd, ok && (!set || strings.EqualFold(currency, "usd"))
}

// Tokens returns a token count; 0 if absent.
func (a Attributes) Tokens(name string) int64 {
	n, _ := a[name].(int64)
	return n
}
