package projection

import "slices"

// shape is how a place of the schema is said to the vendor.
type shape uint8

const (
	// shapeNever: no value fits. It ends as an absent member, or as a problem.
	shapeNever shape = iota
	shapeScalar
	shapeArray
	shapeObject
	// shapeEntries: an object whose members have no known names, said as a list
	// of keys and values.
	shapeEntries
	// shapeText: what the vendor has no words for, said as JSON in a string.
	shapeText
	shapeUnion
	shapeRef
)

// node is a place of the schema. The projected schema is written from the nodes,
// and answers are read along them.
type node struct {
	at       string
	shape    shape
	about    string   // the author's description
	notes    []string // what the vendor cannot be told otherwise
	nullable bool     // the schema takes null, and the answer says it so
	keep     []field  // constraints in the vendor's own words
	// typ and enum are of a scalar; enum holds no null.
	typ  string
	enum []*value
	// items and prefix are of an array; prefix holds its first places.
	items  *node
	prefix []*node
	// members are of an object. rest, if any, holds the members without a name in
	// the schema, under a name that no other member has.
	members []member
	rest    *node
	restAs  string
	byName  map[string]int
	// key and item are of entries.
	key, item *node
	// takes is what the text of shapeText may hold.
	takes kinds
	// branches are of a union; tag tells those that are objects apart.
	branches []*node
	tag      string
	settled  bool
	// byTag and byKind find the branch of an answer.
	byTag  map[string]*node
	byKind map[kinds]*node
	// target is of a reference.
	target *def
	// works: an answer may have to be changed here or below.
	works bool
}

type member struct {
	name     string
	node     *node
	required bool
}

// def is a place that references lead to.
type def struct {
	at   string
	node *node
}

// end is the node behind references.
func (n *node) end() *node {
	for n.shape == shapeRef {
		n = n.target.node
	}
	return n
}

// leaves are the branches of a union, those of the unions among them instead of
// these, and references followed; each once. ok is false when it holds itself.
func (n *node) leaves() (out []*node, ok bool) {
	g := gathering{seen: map[*node]bool{}}
	ok = g.walk(n)
	return g.leaves, ok
}

// gathering looks at each node once: unions within unions reach the same places by
// very many ways.
type gathering struct {
	leaves []*node
	seen   map[*node]bool // true: its branches are being looked at
}

func (g *gathering) walk(n *node) (ok bool) {
	n = n.end()
	if inside, seen := g.seen[n]; seen {
		return !inside
	}
	if n.shape != shapeUnion {
		g.seen[n] = false
		g.leaves = append(g.leaves, n)
		return true
	}
	g.seen[n] = true
	defer func() { g.seen[n] = false }()
	for _, b := range n.branches {
		if !g.walk(b) {
			return false
		}
	}
	return true
}

// takesNull reports whether the answer null means null here.
func (n *node) takesNull() bool { return n.takesNullBut(map[*node]bool{}) }

// takesNullBut looks at no node twice.
func (n *node) takesNullBut(seen map[*node]bool) bool {
	n = n.end()
	if n.nullable {
		return true
	}
	if n.shape == shapeUnion && !seen[n] {
		seen[n] = true
		return slices.ContainsFunc(n.branches, func(b *node) bool { return b.takesNullBut(seen) })
	}
	return n.shape == shapeScalar && n.typ == "null"
}

// source is which kinds of values the schema takes here, null apart; answer is
// what they look like in the projection.
func (n *node) source() kinds {
	switch n.shape {
	case shapeText:
		return n.takes
	case shapeEntries:
		return objects
	default:
		return n.answer()
	}
}

func (n *node) answer() kinds {
	switch n.shape {
	case shapeArray, shapeEntries:
		return arrays
	case shapeObject:
		return objects
	case shapeText:
		return strs
	case shapeScalar:
		return kindOf(n.typ)
	}
	return 0
}

// kindOf is the kind of values of a type.
func kindOf(typ string) kinds {
	switch typ {
	case "null":
		return nulls
	case "boolean":
		return booleans
	case "integer", "number":
		return numbers
	case "string":
		return strs
	case "array":
		return arrays
	case "object":
		return objects
	}
	return 0
}

// plainly reports whether answers are the values themselves, as far as can be
// seen without following what is below.
func (n *node) plainly() bool {
	n = n.end()
	switch n.shape {
	case shapeScalar:
		return true
	case shapeArray:
		return n.items != nil && len(n.prefix) == 0 && n.items.end() != n && n.items.end().shape == shapeScalar
	}
	return false
}

// below lists the nodes that n holds.
func (n *node) below() []*node {
	var out []*node
	for _, m := range n.members {
		out = append(out, m.node)
	}
	for _, c := range []*node{n.rest, n.items, n.key, n.item} {
		if c != nil {
			out = append(out, c)
		}
	}
	return append(append(out, n.prefix...), n.branches...)
}
