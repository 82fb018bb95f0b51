package projection

import (
	"slices"
	"strings"
)

// enum returns the node of a schema that lists its values.
func (b *builder) enum(s *value) *node {
	var values []*value
	if l := s.get("enum"); l != nil {
		values = l.items
	}
	if c := s.get("const"); c != nil {
		if s.get("enum") == nil || holds(s.get("enum"), c) {
			values = []*value{c}
		} else {
			values = nil
		}
	}
	if !b.spend(len(values)) {
		return b.text(s, anything)
	}
	types := typesOf(s.without("enum", "const"))
	n := &node{at: s.at, shape: shapeUnion}
	for _, v := range values {
		typ := v.typeAmong(types)
		switch {
		case typ == "":
		case typ == "null":
			n.nullable = true
		case v.kind == objects || v.kind == arrays:
			return b.text(s, kindsOf(values))
		default:
			n.list(typ, v)
		}
	}
	switch {
	case len(n.branches) == 0 && !n.nullable:
		return &node{at: s.at}
	case len(n.branches) == 0:
		return b.described(&node{at: s.at, shape: shapeScalar, typ: "null"}, s)
	case len(n.branches) == 1:
		n.branches[0].nullable = n.nullable
		return b.described(n.branches[0], s)
	}
	b.unions = append(b.unions, n)
	return b.described(n, s)
}

// list adds a value to the branch of its type. Numbers that are not all integers share one type.
func (n *node) list(typ string, v *value) {
	for _, b := range n.branches {
		if kindOf(b.typ) == v.kind {
			if b.typ != typ {
				b.typ = "number"
			}
			b.enum = append(b.enum, v)
			return
		}
	}
	n.branches = append(n.branches, &node{at: n.at, shape: shapeScalar, typ: typ, enum: []*value{v}})
}

// typeAmong returns the type of a value if it is allowed (nil: all), else "".
func (v *value) typeAmong(allowed []string) string {
	var typ string
	switch v.kind {
	case nulls:
		typ = "null"
	case booleans:
		typ = "boolean"
	case strs:
		typ = "string"
	case arrays:
		typ = "array"
	case objects:
		typ = "object"
	default:
		typ = "integer"
		if strings.ContainsAny(v.plain, ".eE") {
			typ = "number"
		}
	}
	if allowed == nil || slices.Contains(allowed, typ) || v.kind == numbers && slices.Contains(allowed, "number") {
		return typ
	}
	if typ == "number" && slices.Contains(allowed, "integer") {
		return typ // 1.0 is an integer; the value decides
	}
	return ""
}

func kindsOf(values []*value) kinds {
	var k kinds
	for _, v := range values {
		k |= v.kind
	}
	return k
}

// union returns the node of anyOf, and of oneOf, which no vendor supports. Other keywords apply to
// each branch.
func (b *builder) union(s *value) *node {
	keyword := "anyOf"
	if s.get("anyOf") == nil {
		keyword = "oneOf"
		b.rewrite(s.at, []string{"oneOf"}, RewriteAnyOf, "sent as anyOf")
	} else if s.get("oneOf") != nil {
		b.problem(s.at, RuleAllOf, "anyOf and oneOf hold together here; write one anyOf")
		return b.text(s, anything)
	}
	beside := s.without("description", keyword, "$defs", "definitions")
	branches := s.get(keyword).items
	if saysSomething(beside) && onlyRequire(branches) {
		n := b.typed(s.without(keyword))
		n.notes = append(n.notes, needed(keyword, branches))
		return n
	}
	n := b.described(&node{at: s.at, shape: shapeUnion}, s)
	for _, branch := range branches {
		both := branch
		if saysSomething(beside) {
			both = &value{kind: objects, at: branch.at, fields: []field{{"allOf", list(branch.at, []*value{beside, branch})}}}
			if about := branch.get("description"); about != nil {
				both.fields = append(both.fields, field{"description", about})
			}
		}
		if c := b.build(both); c.shape != shapeNever {
			n.branches = append(n.branches, c)
		}
	}
	if len(n.branches) == 0 {
		return &node{at: s.at}
	}
	b.unions = append(b.unions, n)
	return n
}

// onlyRequire reports whether branches only require members.
func onlyRequire(branches []*value) bool {
	return !slices.ContainsFunc(branches, func(s *value) bool {
		return s.get("required") == nil || saysSomething(s.without("required", "description"))
	})
}

func needed(keyword string, branches []*value) string {
	var sets []string
	for _, s := range branches {
		sets = append(sets, strings.Join(s.get("required").texts(), " and "))
	}
	word := "At least"
	if keyword == "oneOf" {
		word = "Exactly"
	}
	return word + " one of these is given: " + strings.Join(sets, "; ") + "."
}

// settle determines how answers of a union are assigned to branches, nested unions first.
func (b *builder) settle(n *node) {
	if n.settled {
		return
	}
	n.settled = true
	for _, c := range n.branches {
		if leaf := c.end(); leaf.shape == shapeUnion {
			b.settle(leaf)
		}
	}
	leaves, ok := n.leaves()
	if !ok {
		b.problem(n.at, RuleReference, "the union is a branch of itself; leave that branch out")
		return
	}
	if !b.room(len(leaves)) { // again for each reference to the union
		return
	}
	n.simplify()
	if n.shape != shapeUnion {
		return
	}
	plain := slices.DeleteFunc(slices.Clone(leaves), func(l *node) bool { return l.shape != shapeObject })
	if len(plain) > 1 {
		if n.tag = b.tagOf(plain); n.tag == "" {
			n.untagged = plain
		}
	}
	if !distinct(leaves) || len(n.untagged) > 0 && !b.separate(n.untagged) {
		n.asText(leaves)
		b.rewrite(n.at, nil, RewriteText, "sent as JSON text in a string, because answers would not tell the branches apart")
	}
}

// simplify removes null from the branches, and a union with a single branch.
func (n *node) simplify() {
	some := slices.DeleteFunc(slices.Clone(n.branches), func(c *node) bool { return c.shape == shapeScalar && c.typ == "null" && len(c.notes) == 0 })
	n.nullable = n.nullable || len(some) < len(n.branches)
	n.branches = some
	if len(some) == 0 {
		*n = node{at: n.at, about: n.about, notes: n.notes, shape: shapeScalar, typ: "null", settled: true}
		return
	}
	if len(some) > 1 || some[0].shape == shapeRef {
		return
	}
	only, nullable := *some[0], n.nullable
	if n.about != "" {
		only.about = n.about
	}
	only.at, only.notes, only.settled = n.at, slices.Concat(n.notes, only.notes), true
	nullInText := only.shape == shapeText && only.takes.has(nulls)
	only.nullable = only.nullable || nullable && !nullInText
	*n = only
}

// tagShare is the number of comparisons that cost as much as searching a branch for a tag.
const tagShare = 8

// tagOf returns the member that identifies object branches (OpenWOP envelope contract §4.2); empty if
// there is none.
func (b *builder) tagOf(plain []*node) string {
	values := map[string]bool{}
	for _, m := range plain[0].members {
		if _, ok := plain[0].pins(m.name); !ok {
			continue
		}
		if !b.spend(tagShare * len(plain)) {
			return ""
		}
		clear(values)
		for _, o := range plain {
			tag, ok := o.pins(m.name)
			if !ok || values[tag] {
				break
			}
			values[tag] = true
		}
		if len(values) == len(plain) {
			return m.name
		}
	}
	return ""
}

// pins returns the only value of a required string member.
func (n *node) pins(name string) (string, bool) {
	i, ok := n.byName[name]
	if !ok || !n.members[i].required {
		return "", false
	}
	m := n.members[i].node.end()
	if m.shape != shapeScalar || m.typ != "string" || len(m.enum) != 1 || m.nullable {
		return "", false
	}
	return m.enum[0].plain, true
}

// distinct reports whether the type of a value, or of an answer, identifies its leaf, apart from
// tagged objects.
func distinct(leaves []*node) bool {
	for _, of := range []func(*node) kinds{(*node).source, (*node).answer} {
		for k := booleans; k <= objects; k <<= 1 {
			claims := slices.DeleteFunc(slices.Clone(leaves), func(l *node) bool { return !of(l).has(k) })
			same := func(l *node) bool { return l.plainly() }
			if k == objects {
				same = func(l *node) bool { return l.shape == shapeObject }
			}
			if len(claims) > 1 && slices.ContainsFunc(claims, func(l *node) bool { return !same(l) }) {
				return false
			}
		}
	}
	return true
}

// asText represents a union as JSON in a string, because its answers would be ambiguous.
func (n *node) asText(leaves []*node) {
	var takes kinds
	for _, l := range leaves {
		takes |= l.source()
	}
	if n.takesNull() {
		takes |= nulls
	}
	*n = node{
		at: n.at, about: n.about, shape: shapeText, takes: takes, settled: true,
		notes: append(slices.Clone(n.notes), "A JSON value, written as JSON text."),
	}
}
