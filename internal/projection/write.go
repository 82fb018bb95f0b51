package projection

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// writer renders nodes as a schema of the vendor.
type writer struct {
	dialect Dialect
	out     []byte
	names   map[string]int  // last number used, by name of a definition
	places  int             // bytes of the paths in where
	named   map[*def]string // used definitions
	queue   []*def          // in the order of output
	where   map[string]string
	never   []*node // places without a valid value
	large   bool    // the output is incomplete
	// nulls is how many optional members can still be sent as required ones that may be null. left are
	// the paths of those that stay optional.
	nulls int
	left  map[string]bool
}

// write returns the schema, and the source path of each of its paths. Optional members become required
// ones that may be null, as far as the vendor's limit of unions allows; the others stay optional.
func write(d Dialect, root *node) *writer {
	w := writeWith(d, root, math.MaxInt)
	if d.Unions == 0 || w.large || countOf(w.out).unions <= d.Unions {
		return w
	}
	least := countOf(writeWith(d, root, 0).out).unions
	return writeWith(d, root, max(d.Unions-least, 0))
}

func writeWith(d Dialect, root *node, nulls int) *writer {
	w := &writer{
		dialect: d, names: map[string]int{}, named: map[*def]string{}, where: map[string]string{}, nulls: nulls, left: map[string]bool{},
	}
	w.node(root, "", false, func() {
		for i := 0; i < len(w.queue); i++ {
			if i == 0 {
				w.raw(`,"$defs":{`)
			} else {
				w.raw(`,`)
			}
			name := w.named[w.queue[i]]
			w.text(name)
			w.raw(`:`)
			w.node(w.queue[i].node, "/$defs"+pointer(name), false, nil)
		}
		if len(w.queue) > 0 {
			w.raw(`}`)
		}
	})
	return w
}

func (w *writer) raw(s string)  { w.out = append(w.out, s...) }
func (w *writer) text(s string) { w.out = appendText(w.out, s) }

// node writes a place. optional: the answer may be null instead of a value.
func (w *writer) node(n *node, at string, optional bool, more func()) {
	w.where[at] = n.at
	if w.places += len(at); len(w.out) > maxWritten || w.places > maxPlaces {
		w.large = true
		return
	}
	w.raw(`{`)
	switch n.shape {
	case shapeNever:
		w.never = append(w.never, n)
	case shapeScalar:
		w.scalar(n, optional)
	case shapeText:
		w.types("string", n.nullable || optional)
		w.about(n)
	case shapeArray:
		w.array(n, at, optional)
	case shapeEntries:
		w.entries(n, at, optional)
	case shapeObject:
		w.object(n, at, optional)
	case shapeUnion:
		w.union(n, at, optional)
	case shapeRef:
		w.reference(n, at, optional)
	}
	if more != nil {
		more()
	}
	w.raw(`}`)
}

// types starts a schema with its type.
func (w *writer) types(typ string, nullable bool) {
	if nullable && typ != "null" {
		w.raw(`"type":["` + typ + `","null"]`)
		return
	}
	w.raw(`"type":"` + typ + `"`)
}

func (w *writer) about(n *node) {
	text := strings.Join(append(slices.DeleteFunc([]string{n.about}, func(s string) bool { return s == "" }), n.notes...), " ")
	if text != "" {
		w.raw(`,"description":`)
		w.text(text)
	}
}

// kept writes the constraints with a vendor keyword.
func (w *writer) kept(n *node) {
	for _, f := range n.keep {
		w.raw(`,`)
		w.text(f.name)
		w.raw(`:`)
		w.out = f.value.append(w.out)
	}
}

func (w *writer) scalar(n *node, optional bool) {
	nullable := n.nullable || optional
	w.types(n.typ, nullable)
	w.about(n)
	w.kept(n)
	if len(n.enum) == 0 {
		return
	}
	values := n.enum
	if nullable {
		values = append(slices.Clone(values), &value{kind: nulls, plain: "null"})
	}
	w.raw(`,"enum":`)
	w.out = list("", values).append(w.out)
}

func (w *writer) array(n *node, at string, optional bool) {
	w.types("array", n.nullable || optional)
	w.about(n)
	w.kept(n)
	for i, p := range n.prefix {
		w.raw([]string{`,"prefixItems":[`, `,`}[min(i, 1)])
		w.node(p, fmt.Sprintf("%s/prefixItems/%d", at, i), false, nil)
	}
	if len(n.prefix) > 0 {
		w.raw(`]`)
	}
	if n.items != nil {
		w.raw(`,"items":`)
		w.node(n.items, at+"/items", false, nil)
	}
}

// The members of an entry.
const (
	entryKey   = "key"
	entryValue = "value"
)

func (w *writer) entries(n *node, at string, optional bool) {
	w.types("array", n.nullable || optional)
	w.about(n)
	w.raw(`,"items":`)
	w.node(&node{
		at:      n.at,
		shape:   shapeObject,
		members: []member{newMember(entryKey, n.key), newMember(entryValue, n.item)},
	}, at+"/items", false, nil)
}

func (w *writer) object(n *node, at string, optional bool) {
	w.types("object", n.nullable || optional)
	w.about(n)
	var names []byte
	w.raw(`,"properties":{`)
	first := true
	put := func(name string, child *node, optional, left bool) {
		if !first {
			w.raw(`,`)
		}
		first = false
		if !left {
			if len(names) > 0 {
				names = append(names, ',')
			}
			names = appendText(names, name)
		}
		w.text(name)
		w.raw(`:`)
		w.node(child, at+"/properties"+pointer(name), optional && !left, nil)
	}
	for i, m := range n.members {
		left := !m.required && !w.mayBeNull(m.node)
		n.members[i].left = left
		if left {
			w.left[m.node.at] = true
		}
		put(m.sent, m.node, !m.required, left)
	}
	if n.rest != nil {
		n.restLeft = !w.mayBeNull(n.rest)
		put(n.restAs, n.rest, true, n.restLeft)
	}
	w.raw(`},"required":[` + string(names) + `],"additionalProperties":false`)
	if w.dialect.says("propertyOrdering") {
		w.raw(`,"propertyOrdering":[` + string(names) + `]`)
	}
}

// mayBeNull reports whether an optional member is sent as a required one that may be null.
func (w *writer) mayBeNull(n *node) bool {
	if n.takesNullItself() { // as it is
		return true
	}
	w.nulls--
	return w.nulls >= 0
}

func (w *writer) reference(n *node, at string, optional bool) {
	null := (optional || n.nullable) && !n.takesNullItself()
	text := n.about != "" || len(n.notes) > 0
	if !null && !text {
		w.raw(`"$ref":`)
		w.text("#/$defs" + pointer(w.name(n.target)))
		return
	}
	w.raw(`"anyOf":[{"$ref":`)
	w.text("#/$defs" + pointer(w.name(n.target)))
	w.raw(`}`)
	if null {
		w.raw(`,{"type":"null"}`)
	}
	w.raw(`]`)
	w.about(n)
}

// takesNullItself reports whether the projected schema of n allows null by itself.
func (n *node) takesNullItself() bool { return n.end().takesNull() }

// union writes its branches. Object branches are in their own union, so that no other branch needs
// a tag.
func (w *writer) union(n *node, at string, optional bool) {
	tagged, other := n.expand()
	null := optional || n.takesNull()
	for _, c := range slices.Concat(tagged, other) {
		null = null && !c.takesNullItself()
	}
	w.raw(`"anyOf":[`)
	i := 0
	branch := func(c *node, at string) {
		if i > 0 {
			w.raw(`,`)
		}
		w.node(c, fmt.Sprintf("%s/anyOf/%d", at, i), false, nil)
		i++
	}
	apart := len(tagged) > 1 && (null || len(other) > 0)
	if apart {
		w.where[at+"/anyOf/0"] = n.at
		w.raw(`{"anyOf":[`)
		for _, c := range tagged {
			branch(c, at+"/anyOf/0")
		}
		w.raw(`]}`)
		i = 1
		tagged = nil
	}
	for _, c := range append(tagged, other...) {
		branch(c, at)
	}
	if null {
		w.raw(`,{"type":"null"}`)
	}
	w.raw(`]`)
	w.about(n)
}

// expand lists the branches, with nested unions flattened, each once.
func (n *node) expand() (tagged, other []*node) {
	n.spread(map[*node]bool{}, &tagged, &other)
	return tagged, other
}

func (n *node) spread(seen map[*node]bool, tagged, other *[]*node) {
	for _, c := range n.branches {
		leaf := c.end()
		switch {
		case seen[leaf]:
		case leaf.shape == shapeUnion:
			leaf.spread(seen, tagged, other)
		case leaf.shape == shapeObject:
			*tagged = append(*tagged, c)
		default:
			*other = append(*other, c)
		}
		seen[leaf] = true
	}
}

// name returns the name of a definition: that of the source if it is plain.
func (w *writer) name(d *def) string {
	if name, ok := w.named[d]; ok {
		return name
	}
	last := d.at[strings.LastIndexByte(d.at, '/')+1:]
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, last)
	if plain == "" {
		plain = "root"
	}
	name := plain
	for i := max(2, w.names[plain]+1); w.names[name] > 0; i++ {
		name = fmt.Sprintf("%s_%d", plain, i)
		w.names[plain] = i
	}
	w.names[name] = max(w.names[name], 1)
	w.named[d] = name
	w.queue = append(w.queue, d)
	return name
}
