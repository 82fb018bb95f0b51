package projection

import "slices"

// object returns the node of a schema for objects. There are three cases:
//
//	named members   an object; without additionalProperties no others are allowed,
//	                otherwise a member holds the rest
//	only a schema   entries, a list of keys and values
//	nothing known   text
func (b *builder) object(s *value) *node {
	others := s.get("additionalProperties")
	if others == nil {
		others = s.get("unevaluatedProperties")
	}
	patterns := len(s.get("patternProperties").list()) > 0
	closed := others.is(false) && !patterns
	if len(s.get("properties").list()) == 0 && !closed {
		if patterns || !b.restricts(others) {
			return b.text(s, objects)
		}
		return b.entries(s, others)
	}
	n := b.described(&node{at: s.at, shape: shapeObject, byName: map[string]int{}}, s)
	b.constrain(n, s, objects)
	if !b.named(n, s, others, patterns) {
		return &node{at: s.at}
	}
	n.arrange(s.get("propertyOrdering").texts())
	switch {
	case patterns || others != nil && !others.is(false):
		b.others(n, s, others, patterns)
		b.rewrite(s.at, nil, RewriteOthers, "unnamed members are sent in the member %s", n.restAs)
	case others == nil:
		b.rewrite(s.at, nil, RewriteClosed, "sent without room for unnamed members; set additionalProperties if there are any")
	}
	b.nameMembers(n)
	return n
}

// restricts reports whether a schema for unnamed members restricts them.
func (b *builder) restricts(others *value) bool {
	return others != nil && others.kind == objects && saysSomething(others)
}

// unnamedPlaces is the cost of a member that is required by name only, because lists of names are
// long.
const unnamedPlaces = 2

// named adds the members a schema names; false if a required one is impossible.
func (b *builder) named(n *node, s, others *value, patterns bool) bool {
	names := s.get("required").texts()
	required, known := make(map[string]bool, len(names)), map[string]bool{}
	for _, name := range names {
		required[name] = true
	}
	for _, f := range s.get("properties").list() {
		known[f.name] = true
		m := member{name: f.name, node: b.build(f.value), required: required[f.name]}
		if m.node.shape == shapeNever {
			if m.required {
				return false
			}
			continue
		}
		if !m.required {
			b.rewrite(f.value.at, nil, RewriteNull, "sent as required; null stands for its absence")
		}
		n.members = append(n.members, m)
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		known[name] = true
		if !b.room(unnamedPlaces) {
			return false
		}
		if others.is(false) && !patterns {
			return false
		}
		schema := &value{kind: booleans, plain: "true", at: s.at}
		if !patterns && b.restricts(others) {
			schema = others
		}
		m := member{name: name, node: b.build(schema), required: true}
		if m.node.shape == shapeNever {
			return false
		}
		n.members = append(n.members, m)
	}
	return true
}

// others adds the member that holds the unnamed members.
func (b *builder) others(n *node, s, others *value, patterns bool) {
	about := value{kind: objects, at: s.at}
	if !patterns && b.restricts(others) {
		n.rest = b.entries(&about, others)
	} else {
		for _, k := range []string{"patternProperties", "additionalProperties"} {
			if v := s.get(k); v != nil && v.kind == objects {
				about.fields = append(about.fields, field{k, v})
			}
		}
		n.rest = b.text(&about, objects)
	}
	n.rest.notes = append([]string{"Members besides those named here; null if there are none."}, n.rest.notes...)
	n.restAs = "otherMembers"
	for _, taken := n.byName[n.restAs]; taken; _, taken = n.byName[n.restAs] {
		n.restAs += "_"
	}
}

// arrange orders members: reasoning first, so that a model reasons before it fills in the others,
// then in the author's order (OpenWOP envelope contract §5).
func (n *node) arrange(ordering []string) {
	ranks := make(map[string]int, len(ordering))
	for i, name := range slices.Backward(ordering) { // the first occurrence counts
		ranks[name] = i
	}
	rank := func(name string) int {
		if name == "reasoning" {
			return -1
		}
		if i, ok := ranks[name]; ok {
			return i
		}
		return len(ordering)
	}
	slices.SortStableFunc(n.members, func(x, y member) int { return rank(x.name) - rank(y.name) })
	for i, m := range n.members {
		n.byName[m.name] = i
	}
}

// entries returns the node of an object whose members have a schema but no names.
func (b *builder) entries(s, others *value) *node {
	n := b.described(&node{at: s.at, shape: shapeEntries}, s)
	n.notes = append(n.notes, "An object, written as a list of its members; each key once.")
	b.rewrite(s.at, nil, RewriteEntries, "sent as a list of keys and values")
	key := &value{kind: objects, at: s.at, fields: []field{{"type", &value{kind: strs, plain: "string"}}}}
	if names := s.get("propertyNames"); names != nil {
		key = together(s.at, key, names)
		s = s.without("propertyNames")
	}
	b.constrain(n, s, objects)
	n.key, n.item = b.build(key), b.build(others)
	if n.key.shape != shapeScalar || n.key.typ != "string" || n.item.shape == shapeNever {
		return b.text(s, objects)
	}
	return n
}

// array returns the node of a schema for arrays.
func (b *builder) array(s *value) *node {
	prefix, rest := s.get("prefixItems"), s.get("items")
	if prefix != nil && (!b.dialect.says("prefixItems") || rest == nil || rest.is(true)) {
		return b.text(s, arrays)
	}
	n := b.described(&node{at: s.at, shape: shapeArray}, s)
	b.constrain(n, s, arrays)
	if prefix != nil {
		for _, p := range prefix.items {
			n.prefix = append(n.prefix, b.build(p))
		}
		if slices.ContainsFunc(n.prefix, func(p *node) bool { return p.shape == shapeNever }) {
			return b.text(s, arrays)
		}
	}
	if rest == nil {
		rest = &value{kind: booleans, plain: "true", at: s.at}
	}
	n.items = b.build(rest)
	if n.items.shape != shapeNever {
		return n
	}
	if prefix != nil {
		n.items = nil
		n.notes = append(n.notes, "No further items.")
		return n
	}
	n.items = &node{at: n.items.at, shape: shapeScalar, typ: "null"}
	n.notes = append(n.notes, "No items.")
	return n
}
