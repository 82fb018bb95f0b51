package accept

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// impossible reports whether it is provable that no value satisfies a schema. It computes a superset of
// the values, by type, bounds, choices and lengths of strings. The schema compiles.
func impossible(source json.RawMessage) bool {
	p := prover{root: source}
	return len(p.values(source, nil)) == 0 || noChoiceFits(source)
}

// noChoiceFits reports whether a schema lists its values, and none of them satisfies all of it.
func noChoiceFits(source json.RawMessage) bool {
	m := strictjson.Object(source)
	choices := list(m["enum"])
	if one, ok := m["const"]; ok {
		choices = append(choices, one)
	}
	s, err := schema.Compile("schema", source)
	return err == nil && len(choices) > 0 &&
		!slices.ContainsFunc(choices, func(choice json.RawMessage) bool { return len(s.Validate(choice)) == 0 })
}

// kinds of values, as bits.
type kinds uint8

const (
	nullKind kinds = 1 << iota
	boolKind
	integerKind
	fractionKind
	stringKind
	arrayKind
	objectKind
	allKinds = 1<<iota - 1
)

// kindsByType are the kinds of the types of JSON Schema.
var kindsByType = map[string]kinds{ //nolint:gochecknoglobals // a constant
	"null": nullKind, "boolean": boolKind, "integer": integerKind, "number": integerKind | fractionKind,
	"string": stringKind, "array": arrayKind, "object": objectKind,
}

// interval is a range of numbers, lengths or sizes.
type interval struct {
	low, high         float64
	openLow, openHigh bool
}

func (a interval) and(b interval) interval {
	switch {
	case b.low > a.low:
		a.low, a.openLow = b.low, b.openLow
	case b.low == a.low:
		a.openLow = a.openLow || b.openLow
	}
	switch {
	case b.high < a.high:
		a.high, a.openHigh = b.high, b.openHigh
	case b.high == a.high:
		a.openHigh = a.openHigh || b.openHigh
	}
	return a
}

func (a interval) empty() bool {
	return a.low > a.high || a.low == a.high && (a.openLow || a.openHigh)
}

// withoutInteger reports whether no integer is in the interval.
func (a interval) withoutInteger() bool {
	first, last := math.Ceil(a.low), math.Floor(a.high)
	if a.openLow && first == a.low {
		first++
	}
	if a.openHigh && last == a.high {
		last--
	}
	return first > last
}

// set is a set of values: those of the kinds whose numbers, lengths and sizes are in the intervals.
type set struct {
	kinds                            kinds
	numbers, lengths, items, members interval
}

func all() set {
	sizes := interval{low: 0, high: math.Inf(1)}
	return set{
		kinds: allKinds, numbers: interval{low: math.Inf(-1), high: math.Inf(1)},
		lengths: sizes, items: sizes, members: sizes,
	}
}

// and returns the intersection of two sets, without the kinds that have no value in it.
func (a set) and(b set) set {
	a.kinds &= b.kinds
	a.numbers, a.lengths = a.numbers.and(b.numbers), a.lengths.and(b.lengths)
	a.items, a.members = a.items.and(b.items), a.members.and(b.members)
	for _, k := range []struct {
		kind kinds
		none bool
	}{
		{integerKind, a.numbers.empty() || a.numbers.withoutInteger()},
		{fractionKind, a.numbers.empty()},
		{stringKind, a.lengths.empty()},
		{arrayKind, a.items.empty()},
		{objectKind, a.members.empty()},
	} {
		if k.none {
			a.kinds &^= k.kind
		}
	}
	return a
}

// maxSets limits the alternatives that are kept apart, maxDepth the nesting of schemas that are looked at,
// maxSteps their number. Beyond them, any value counts as possible.
const (
	maxSets  = 64
	maxDepth = 32
	maxSteps = 4096
)

// prover computes the values of the parts of a schema.
type prover struct {
	root         json.RawMessage
	depth, steps int
}

// values returns sets that together have all values of a schema. open are the references that are being
// resolved: a value that needs itself does not exist.
func (p *prover) values(part json.RawMessage, open []string) []set {
	if strings.TrimSpace(string(part)) == "false" {
		return nil
	}
	m := strictjson.Object(part)
	if len(m) == 0 || p.depth >= maxDepth || p.steps >= maxSteps {
		return []set{all()}
	}
	p.depth++
	p.steps++
	defer func() { p.depth-- }()
	out := meet([]set{all()}, []set{p.own(m, open)})
	if ref, ok := strictjson.String(m["$ref"]); ok {
		out = meet(out, p.referenced(ref, open))
	}
	for _, each := range list(m["allOf"]) {
		out = meet(out, p.values(each, open))
	}
	if m["anyOf"] != nil {
		out = meet(out, p.union(list(m["anyOf"]), open))
	}
	if m["oneOf"] != nil {
		out = meet(out, p.union(withoutTwins(list(m["oneOf"])), open))
	}
	if m["if"] != nil {
		out = meet(out, p.conditional(m, open))
	}
	return out
}

// own returns the values by the keywords of one schema alone.
func (p *prover) own(m map[string]json.RawMessage, open []string) set {
	s := all()
	if types := typesOf(m); types != nil {
		s.kinds = 0
		for _, t := range types {
			s.kinds |= kindsByType[t]
		}
	}
	s.kinds &^= p.denied(m["not"])
	s.numbers = between(m, "minimum", "maximum", s.numbers)
	if n, ok := numberOf(m["exclusiveMinimum"]); ok {
		s.numbers = s.numbers.and(interval{low: n, openLow: true, high: math.Inf(1)})
	}
	if n, ok := numberOf(m["exclusiveMaximum"]); ok {
		s.numbers = s.numbers.and(interval{low: math.Inf(-1), high: n, openHigh: true})
	}
	s.lengths = between(m, "minLength", "maxLength", s.lengths)
	s.items = between(m, "minItems", "maxItems", s.items)
	s.members = between(m, "minProperties", "maxProperties", s.members)
	if pattern, ok := strictjson.String(m["pattern"]); ok {
		if matchesNothing(pattern) {
			s.kinds &^= stringKind
		}
		s.lengths = s.lengths.and(matchLengths(pattern))
	}
	if len(p.values(orTrue(m["items"]), open)) == 0 { // then only what prefixItems describe can be there
		s.items = s.items.and(interval{low: 0, high: float64(len(list(m["prefixItems"])))})
	}
	var required []string
	_ = json.Unmarshal(m["required"], &required) // the schema compiles
	named := strictjson.Object(m["properties"])
	for _, name := range required {
		if len(p.values(orTrue(named[name]), open)) == 0 {
			s.kinds &^= objectKind
		}
	}
	s.members = s.members.and(interval{low: float64(len(required)), high: math.Inf(1)})
	return s
}

func orTrue(part json.RawMessage) json.RawMessage {
	if part == nil {
		return json.RawMessage("true")
	}
	return part
}

func between(m map[string]json.RawMessage, low, high string, a interval) interval {
	if n, ok := numberOf(m[low]); ok {
		a = a.and(interval{low: n, high: math.Inf(1)})
	}
	if n, ok := numberOf(m[high]); ok {
		a = a.and(interval{low: math.Inf(-1), high: n})
	}
	return a
}

// denied returns the kinds of which a schema in not accepts every value.
func (p *prover) denied(not json.RawMessage) (out kinds) {
	if text := strings.TrimSpace(string(not)); text == "true" {
		return allKinds
	}
	m := strictjson.Object(not)
	if m == nil {
		return 0
	}
	for name := range m {
		if !slices.Contains([]string{"type", "title", "description", "$comment", "examples", "default"}, name) {
			return 0
		}
	}
	types := typesOf(m)
	if types == nil {
		return allKinds
	}
	for _, t := range types {
		out |= kindsByType[t]
	}
	return out
}

// referenced returns the values of a part of the same schema. Other references are not followed.
func (p *prover) referenced(ref string, open []string) []set {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return []set{all()}
	}
	if slices.Contains(open, ref) {
		return nil
	}
	part, ok := find(p.root, pointer)
	if !ok {
		return []set{all()}
	}
	return p.values(part, append(slices.Clone(open), ref))
}

// find returns the part of a document at a pointer.
func find(doc json.RawMessage, pointer string) (json.RawMessage, bool) {
	if pointer == "" {
		return doc, true
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		name, err := url.PathUnescape(jsonpointer.Unescape(token))
		if err != nil {
			return nil, false
		}
		if items := list(doc); items != nil {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(items) {
				return nil, false
			}
			doc = items[i]
			continue
		}
		part, ok := strictjson.Object(doc)[name]
		if !ok {
			return nil, false
		}
		doc = part
	}
	return doc, true
}

func (p *prover) union(branches []json.RawMessage, open []string) (out []set) {
	for _, each := range branches {
		out = append(out, p.values(each, open)...)
	}
	if len(out) > maxSets {
		return []set{all()}
	}
	return out
}

// conditional returns the values by if, then and else.
func (p *prover) conditional(m map[string]json.RawMessage, open []string) []set {
	always := p.denied(m["if"]) == allKinds
	then := meet(p.values(m["if"], open), p.values(orTrue(m["then"]), open))
	if always {
		return then
	}
	return append(then, p.values(orTrue(m["else"]), open)...)
}

// meet returns the intersection of two unions of sets.
func meet(a, b []set) (out []set) {
	if len(a)*len(b) > maxSets {
		return a // a superset
	}
	for _, x := range a {
		for _, y := range b {
			if both := x.and(y); both.kinds != 0 {
				out = append(out, both)
			}
		}
	}
	return out
}

// withoutTwins leaves out branches that are there twice: of oneOf, no value satisfies exactly one of them.
func withoutTwins(branches []json.RawMessage) (out []json.RawMessage) {
	for i, a := range branches {
		twin := false
		for j, b := range branches {
			twin = twin || i != j && strictjson.Same(a, b)
		}
		if !twin {
			out = append(out, a)
		}
	}
	return out
}

func list(raw json.RawMessage) (out []json.RawMessage) {
	_ = json.Unmarshal(raw, &out) // the schema compiles
	return out
}
