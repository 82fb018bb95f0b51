package accept

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// bounds are the keywords of a lower and an upper limit.
var bounds = [][2]string{ //nolint:gochecknoglobals // a constant
	{"minimum", "maximum"},
	{"minLength", "maxLength"},
	{"minItems", "maxItems"},
	{"minProperties", "maxProperties"},
	{"minContains", "maxContains"},
}

// plainValues are keywords whose values are not schemas.
var plainValues = []string{"enum", "const", "default", "examples"} //nolint:gochecknoglobals // a constant

// schemasByName are keywords whose values are objects of schemas.
var schemasByName = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"} //nolint:gochecknoglobals // a constant

// findContradiction finds a part of a schema that rejects every value by itself. It returns its path.
// The schema compiles.
func findContradiction(at string, part json.RawMessage) (path string, found bool) {
	var list []json.RawMessage
	if json.Unmarshal(part, &list) == nil {
		for i, item := range list {
			if path, found := findContradiction(at+"/"+strconv.Itoa(i), item); found {
				return path, true
			}
		}
		return "", false
	}
	members := strictjson.Object(part)
	if members != nil && rejectsAll(members) {
		return at, true
	}
	return findInMembers(at, members)
}

// findInMembers is findContradiction for the parts of a schema.
func findInMembers(at string, members map[string]json.RawMessage) (path string, found bool) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		below, find := at+"/"+jsonpointer.Escape(name), findContradiction
		switch {
		case slices.Contains(plainValues, name):
			continue
		case slices.Contains(schemasByName, name):
			find = findInNamed
		}
		if path, found := find(below, members[name]); found {
			return path, true
		}
	}
	return "", false
}

// findInNamed is findContradiction for an object of schemas.
func findInNamed(at string, part json.RawMessage) (path string, found bool) {
	named := strictjson.Object(part)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if path, found := findContradiction(at+"/"+jsonpointer.Escape(name), named[name]); found {
			return path, true
		}
	}
	return "", false
}

// rejectsAll reports whether the keywords of one schema, without its parts, reject every value: a lower
// limit above the upper one, choices that no keyword allows, members that must be there and cannot.
func rejectsAll(m map[string]json.RawMessage) bool {
	for _, b := range bounds {
		low, lok := numberOf(m[b[0]])
		high, hok := numberOf(m[b[1]])
		if lok && hok && low > high {
			return true
		}
	}
	not := string(m["not"])
	return not == "true" || not == "{}" || noNumber(m) || noChoice(m) || noObject(m) || noList(m) || noType(m)
}

func numberOf(raw json.RawMessage) (n float64, ok bool) {
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil
}

// typesOf returns the types that a schema names; nil for all.
func typesOf(m map[string]json.RawMessage) (types []string) {
	var one string
	if json.Unmarshal(m["type"], &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(m["type"], &types) // the schema compiles
	return types
}

// noNumber reports whether a schema of numbers alone has none within its bounds.
func noNumber(m map[string]json.RawMessage) bool {
	types := typesOf(m)
	if len(types) != 1 || types[0] != "integer" && types[0] != "number" {
		return false
	}
	low, high, openLow, openHigh := math.Inf(-1), math.Inf(1), false, false
	if n, ok := numberOf(m["minimum"]); ok {
		low = n
	}
	if n, ok := numberOf(m["exclusiveMinimum"]); ok && n >= low {
		low, openLow = n, true
	}
	if n, ok := numberOf(m["maximum"]); ok {
		high = n
	}
	if n, ok := numberOf(m["exclusiveMaximum"]); ok && n <= high {
		high, openHigh = n, true
	}
	if low > high || low == high && (openLow || openHigh) {
		return true
	}
	step, ok := numberOf(m["multipleOf"])
	switch {
	case types[0] == "integer" && (!ok || step < 1):
		step = 1
	case !ok || step <= 0:
		return false
	}
	if math.IsInf(low, 0) || math.IsInf(high, 0) {
		return false
	}
	first := math.Ceil(low / step)
	if openLow && first*step == low {
		first++
	}
	const rounding = 1e-9
	over := first*step - high
	return over > rounding*math.Max(1, math.Abs(high)) || openHigh && over == 0
}

// ownKeywords are the keywords that apply to a value without its parts.
var ownKeywords = []string{ //nolint:gochecknoglobals // a constant
	"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "pattern", "minItems", "maxItems", "minProperties", "maxProperties", "required",
}

// noChoice reports whether no value of enum or const satisfies the other keywords.
func noChoice(m map[string]json.RawMessage) bool {
	var choices []json.RawMessage
	if one, ok := m["const"]; ok {
		choices = append(choices, one)
	} else if json.Unmarshal(m["enum"], &choices) != nil {
		return false
	}
	own := map[string]json.RawMessage{}
	for _, name := range ownKeywords {
		if raw, ok := m[name]; ok {
			own[name] = raw
		}
	}
	s, err := schema.Compile("choices", strictjson.Render(own))
	if err != nil {
		return false // the whole schema compiles, so a keyword needs its neighbours
	}
	return !slices.ContainsFunc(choices, func(choice json.RawMessage) bool { return len(s.Validate(choice)) == 0 })
}

// noObject reports whether a schema of objects alone requires members that it does not allow.
func noObject(m map[string]json.RawMessage) bool {
	if types := typesOf(m); len(types) != 1 || types[0] != "object" {
		return false
	}
	var required []string
	_ = json.Unmarshal(m["required"], &required) // the schema compiles
	if most, ok := numberOf(m["maxProperties"]); ok && most < float64(len(required)) {
		return true
	}
	if string(m["additionalProperties"]) != "false" || m["patternProperties"] != nil {
		return false
	}
	named := strictjson.Object(m["properties"])
	return slices.ContainsFunc(required, func(name string) bool { return named[name] == nil })
}

// noList reports whether a schema of lists alone wants more items than there can be.
func noList(m map[string]json.RawMessage) bool {
	types := typesOf(m)
	least, ok := numberOf(m["minItems"])
	if len(types) != 1 || types[0] != "array" || !ok || m["prefixItems"] != nil {
		return false
	}
	if string(m["items"]) == "false" {
		return least > 0
	}
	var choices []json.RawMessage
	if string(m["uniqueItems"]) != "true" || json.Unmarshal(strictjson.Object(m["items"])["enum"], &choices) != nil {
		return false
	}
	return least > float64(len(choices))
}

// noType reports whether the schemas of allOf have no type in common.
func noType(m map[string]json.RawMessage) bool {
	var all []json.RawMessage
	if json.Unmarshal(m["allOf"], &all) != nil {
		return false
	}
	left := typesOf(m)
	for _, part := range all {
		if left = commonTypes(left, typesOf(strictjson.Object(part))); left != nil && len(left) == 0 {
			return true
		}
	}
	return false
}

// commonTypes returns the types that are in both lists, of which nil has all. An integer is a number.
func commonTypes(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := []string{}
	for _, pair := range [][2][]string{{a, b}, {b, a}} {
		for _, t := range pair[0] {
			in := slices.Contains(pair[1], t) || t == "integer" && slices.Contains(pair[1], "number")
			if in && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}
