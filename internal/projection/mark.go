package projection

// mark records on each node whether answers may change there or below. Nodes form cycles, so it
// repeats until nothing changes.
func mark(root *node) {
	var all []*node
	seen := map[*node]bool{}
	var collect func(n *node)
	collect = func(n *node) {
		n = n.end()
		if seen[n] {
			return
		}
		seen[n] = true
		all = append(all, n)
		n.sort()
		for _, c := range n.below() {
			collect(c)
		}
	}
	collect(root)
	for again := true; again; {
		again = false
		for _, n := range all {
			if !n.works && n.changes() {
				n.works, again = true, true
			}
		}
	}
}

// changes reports whether answers may change at n, as far as known.
func (n *node) changes() bool {
	if n.shape == shapeText || n.shape == shapeEntries || n.rest != nil {
		return true
	}
	for _, m := range n.members {
		if m.dropsNull() || m.sent != m.name {
			return true
		}
	}
	for _, c := range n.below() {
		if c.end().works {
			return true
		}
	}
	return false
}

// dropsNull reports whether the answer null means that the member is absent.
func (m member) dropsNull() bool { return !m.required && !m.node.takesNull() }

// sort prepares a union for answers: the branch by type of value, and among objects by tag.
func (n *node) sort() {
	if n.shape != shapeUnion {
		return
	}
	n.byTag, n.byKind, n.tagNames = map[string]*node{}, map[kinds]*node{}, map[string]bool{}
	tagged, other := n.expand()
	for _, c := range append(tagged, other...) {
		leaf := c.end()
		n.byKind[leaf.answer()] = leaf
		if tag, ok := leaf.pins(n.tag); ok && leaf.shape == shapeObject {
			n.byTag[tag] = leaf
			n.tagNames[leaf.members[leaf.byName[n.tag]].sent] = true
		}
	}
}
