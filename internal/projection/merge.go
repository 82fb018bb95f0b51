package projection

import (
	"slices"
	"strings"
)

// term is one of several schemas that apply together: expanded, or the target of a reference.
type term struct {
	plain  *value
	target *value
}

// terms splits a schema into the schemas that apply together, without those that have no effect.
func (b *builder) terms(s *value, seen map[string]bool) ([]term, bool) {
	if !b.sayable(s) {
		return nil, false
	}
	var out []term
	if own := s.without("$ref", "allOf"); saysSomething(own) {
		out = append(out, term{plain: own})
	}
	for _, f := range s.fields {
		switch f.name {
		case "$ref":
			target, ok := b.resolve(f.value.plain)
			if !ok {
				b.problem(s.at+"/$ref", RuleReference, "the reference leads out of the schema, or by way of an inner $id; refer to a place of this document as #/$defs/name")
				return nil, false
			}
			if !seen[target.at] {
				seen[target.at] = true
				out = append(out, term{target: target})
			}
		case "allOf":
			for _, part := range f.value.items {
				more, ok := b.part(part, seen)
				if !ok {
					return nil, false
				}
				out = append(out, more...)
			}
		}
	}
	return out, true
}

// part splits an element of an allOf.
func (b *builder) part(s *value, seen map[string]bool) ([]term, bool) {
	if s.kind == booleans {
		if s.is(true) {
			return nil, true
		}
		return []term{{plain: s}}, true
	}
	return b.terms(s, seen)
}

// sayable reports the keywords that would be lost.
func (b *builder) sayable(s *value) bool {
	ok := true
	for _, f := range s.fields {
		if _, bad := refused[f.name]; bad {
			rule, message := refusal(f.name)
			b.problem(s.at+pointer(f.name), rule, "%s", message)
			ok = false
		}
	}
	return ok
}

func saysSomething(s *value) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return slices.Contains(structural, f.name) })
}

// merged merges terms into one schema.
func (b *builder) merged(s *value, ts []term) (*value, bool) {
	seen := map[string]bool{s.at: true}
	var whole *value
	for len(ts) > 0 {
		t := ts[0]
		ts = ts[1:]
		if t.target != nil {
			if seen[t.target.at] {
				continue
			}
			seen[t.target.at] = true
			more, ok := b.part(t.target, seen)
			if !ok {
				return nil, false
			}
			ts = append(slices.Clone(more), ts...)
			continue
		}
		switch {
		case whole == nil || t.plain.is(false):
			whole = t.plain
		case !whole.is(false):
			if whole = b.both(whole, t.plain, s.at); whole == nil {
				return nil, false
			}
		}
	}
	if whole == nil { // circular references
		b.problem(s.at, RuleReference, "the references lead in a circle without saying anything; write the schema where one of them stands")
		return nil, false
	}
	return whole, true
}

// both merges two schemas; nil with a problem if that would change their meaning.
func (b *builder) both(x, y *value, at string) *value {
	if (hasAny(x, "patternProperties") && hasAny(y, named...)) || (hasAny(y, "patternProperties") && hasAny(x, named...)) {
		b.problem(at, RuleAllOf, "patternProperties do not go together with the members of another part of allOf; write the object out")
		return nil
	}
	if !b.pay(x, y) {
		return nil
	}
	out := &value{kind: objects, at: at}
	if hasAny(x, named...) || hasAny(y, named...) {
		out.fields = append(out.fields, members(x, y, at)...)
	}
	out.fields = append(out.fields, x.without(named...).fields...)
	for _, f := range y.without(named...).fields {
		if !b.join(out, f, at) {
			return nil
		}
	}
	if types := out.get("type"); types != nil && types.kind == arrays && len(types.items) == 0 {
		return &value{kind: booleans, plain: "false", at: at}
	}
	return out
}

// pay counts the cost of merging two schemas. A merged schema is merged again with the next, at
// every place that needs it.
func (b *builder) pay(x, y *value) bool {
	nx, ny := len(x.get("properties").list()), len(y.get("properties").list())
	return b.room(x.copied()+y.copied()) && b.spend(nx*ny)
}

// copied returns how much of a schema a merge copies.
func (v *value) copied() int {
	n := 1
	for _, f := range v.fields {
		n += 1 + len(f.value.items)/8 + len(f.value.fields) // a list is copied as a whole
	}
	return n
}

// join adds a keyword of a second schema to a first.
func (b *builder) join(out *value, f field, at string) bool {
	i := slices.IndexFunc(out.fields, func(o field) bool { return o.name == f.name })
	if i < 0 || spoken[f.name] != nil {
		out.fields = append(out.fields, f) // both limits apply
		return true
	}
	have := out.fields[i].value
	switch f.name {
	case "type":
		out.fields[i].value = commonTypes(have, f.value)
	case "required":
		out.fields[i].value = list(at, slices.Concat(have.items, f.value.items))
	case "enum":
		out.fields[i].value = list(at, shared(have.items, f.value.items))
	case "items":
		out.fields[i].value = together(at, have, f.value)
	case "anyOf", "oneOf", "prefixItems", "const", "unevaluatedProperties":
		if !equal(have, f.value) {
			b.problem(at, RuleAllOf, "two parts of allOf have %s; write them as one", f.name)
			return false
		}
	}
	return true
}

// named are the keywords that define the members of an object.
var named = []string{"properties", "additionalProperties", "patternProperties"}

// members merges the members of two objects: each must satisfy both; a member named by only one
// must satisfy the other's rule for unnamed members.
func members(x, y *value, at string) []field {
	properties := &value{kind: objects, at: at}
	for _, f := range x.get("properties").list() {
		properties.fields = append(properties.fields, field{f.name, together(f.value.at, f.value, otherwise(y, f.name))})
	}
	for _, f := range y.get("properties").list() {
		if x.get("properties").get(f.name) == nil {
			properties.fields = append(properties.fields, field{
				f.name, together(f.value.at, f.value, x.get("additionalProperties")),
			})
		}
	}
	var out []field
	if len(properties.fields) > 0 {
		out = append(out, field{"properties", properties})
	}
	if x.get("additionalProperties") != nil || y.get("additionalProperties") != nil {
		out = append(out, field{
			"additionalProperties",
			together(at, x.get("additionalProperties"), y.get("additionalProperties")),
		})
	}
	for _, o := range []*value{x, y} {
		if p := o.get("patternProperties"); p != nil {
			out = append(out, field{"patternProperties", p})
		}
	}
	return out
}

// otherwise returns an object's schema for a member, named or not.
func otherwise(s *value, name string) *value {
	if p := s.get("properties").get(name); p != nil {
		return p
	}
	return s.get("additionalProperties")
}

// together returns a schema for values that satisfy both; one may be nil.
func together(at string, x, y *value) *value {
	switch {
	case x == nil || x.is(true):
		if y == nil {
			return x
		}
		return y
	case y == nil || y.is(true) || equal(x, y):
		return x
	case x.is(false) || y.is(false):
		return &value{kind: booleans, plain: "false", at: at}
	}
	return &value{kind: objects, at: at, fields: []field{{"allOf", list(at, []*value{x, y})}}}
}

func list(at string, items []*value) *value { return &value{kind: arrays, at: at, items: items} }

// list returns the members of v, which may be nil.
func (v *value) list() []field {
	if v == nil {
		return nil
	}
	return v.fields
}

// shared returns the values that are in both lists.
func shared(values, others []*value) []*value {
	known := make(map[digest]bool, len(others))
	for _, v := range others {
		known[v.identity()] = true
	}
	return slices.DeleteFunc(slices.Clone(values), func(v *value) bool { return !known[v.identity()] })
}

func holds(l, v *value) bool {
	return slices.ContainsFunc(l.items, func(item *value) bool { return equal(item, v) })
}

func hasAny(s *value, names ...string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return slices.Contains(names, f.name) })
}

// commonTypes returns the types two keywords allow; an integer is a number.
func commonTypes(x, y *value) *value {
	types := func(v *value) []string {
		if v.kind == strs {
			return []string{v.plain}
		}
		return v.texts()
	}
	var out []*value
	said := map[string]bool{}
	for _, a := range types(x) {
		for _, c := range types(y) {
			t := a
			switch {
			case a == c:
			case a == "number" && c == "integer":
				t = c
			case a == "integer" && c == "number":
			default:
				continue
			}
			if !said[t] {
				said[t] = true
				out = append(out, &value{kind: strs, plain: t, at: x.at})
			}
		}
	}
	return list(x.at, out)
}

// spelled renders a schema for the description of text; empty if it has no effect, is long, or
// refers to anything outside.
func spelled(s *value) string {
	const most = 1000
	if s.kind == booleans {
		return ""
	}
	plain := &value{kind: objects}
	for _, f := range s.fields {
		if slices.Contains(structural, f.name) {
			plain.fields = append(plain.fields, f)
		}
	}
	if len(plain.fields) == 0 || len(plain.fields) == 1 && plain.fields[0].name == "type" && plain.fields[0].value.kind == strs {
		return ""
	}
	if left := most; !plain.within(&left) {
		return ""
	}
	out := plain.String()
	if len(out) > most || strings.Contains(out, `"$ref"`) {
		return ""
	}
	return out
}

// within reports whether v can be rendered in the remaining bytes.
func (v *value) within(left *int) bool {
	if *left -= len(v.plain) + 1; *left < 0 {
		return false
	}
	for _, f := range v.fields {
		if *left -= len(f.name); !f.value.within(left) {
			return false
		}
	}
	for _, item := range v.items {
		if !item.within(left) {
			return false
		}
	}
	return true
}
