package projection

import "slices"

// shape is the representation of a place in the vendor's schema.
type shape uint8

const (
	// shapeNever: no value is valid. It becomes an absent member, or a problem.
	shapeNever shape = iota
	shapeScalar
	shapeArray
	shapeObject
	// shapeEntries: an object with unknown member names, represented as a list of keys and values.
	shapeEntries
	// shapeText: JSON in a string, for schemas that the vendor cannot express.
	shapeText
	shapeUnion
	shapeRef
)

// node is a place of the schema. The projection is written from the nodes, and answers are read
// along them.
type node struct {
	at       string
	shape    shape
	about    string   // the author's description
	notes    []string // sentences for rules without a vendor keyword
	nullable bool     // the schema allows null, and so does the answer
	keep     []field  // constraints as vendor keywords
	// typ and enum belong to scalars; enum excludes null.
	typ  string
	enum []*value
	// items and prefix belong to arrays; prefix holds the first items.
	items  *node
	prefix []*node
	// members belong to objects. rest, if any, holds the members unnamed in the schema, under a
	// unique name.
	members []member
	rest    *node
	restAs  string
	// restLeft means that the member of the rest is optional in the projection.
	restLeft bool
	// byName finds members by their name in the schema, bySent by that in an answer.
	byName, bySent map[string]int
	// key and item belong to entries.
	key, item *node
	// takes lists the types that the text of shapeText may hold.
	takes kinds
	// branches belong to unions; tag identifies object branches.
	branches []*node
	tag      string
	// untagged are the object branches if there is no tag.
	untagged []*node
	settled  bool
	// tagNames are the names of the tag in answers; they can differ from the tag.
	tagNames map[string]bool
	// byTag and byKind find the branch of an answer.
	byTag  map[string]*node
	byKind map[kinds]*node
	// target belongs to references.
	target *def
	// works: an answer may change here or below.
	works bool
}

type member struct {
	// name is that of the schema, sent that of the projection.
	name, sent string

	node     *node
	required bool
	// left means that the member is optional in the projection, too.
	left bool
}

// newMember returns a required member that is sent under its own name.
func newMember(name string, n *node) member {
	return member{name: name, sent: name, node: n, required: true}
}

// def is the target of references.
type def struct {
	at   string
	node *node
}

// end follows references to their final node.
func (n *node) end() *node {
	for n.shape == shapeRef {
		n = n.target.node
	}
	return n
}

// leaves returns the branches of a union, with nested unions flattened and references followed;
// each once. ok is false if it contains itself.
func (n *node) leaves() (out []*node, ok bool) {
	g := gathering{seen: map[*node]bool{}}
	ok = g.walk(n)
	return g.leaves, ok
}

// gathering visits each node once, because nested unions reach the same nodes in very many ways.
type gathering struct {
	leaves []*node
	seen   map[*node]bool // true: its branches are being visited
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

// takesNullBut visits no node twice.
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

// source returns the types of values the schema allows here, except null; answer returns the types
// in the projection.
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

// kindOf returns the kind of a type's values.
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

// plainly reports whether answers are the values themselves, without looking below.
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

// below lists the child nodes of n.
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
