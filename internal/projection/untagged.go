package projection

import "slices"

// Objects of a union without a tag are distinguished by the names of their members, and by the types and
// enums of members of the same name. Nothing below them is compared, so that the cost stays small.

// separate reports whether each answer fits one object at most. For a vendor that wants it, it also
// arranges the objects so that each starts with another member.
func (b *builder) separate(objects []*node) bool {
	for i, x := range objects {
		for _, y := range objects[:i] {
			if !b.spend(1+len(x.members)) || !apart(x, y) {
				return false
			}
		}
	}
	return !b.dialect.FirstKeys || distinguishFirst(objects)
}

// apart reports whether no answer fits both objects.
func apart(x, y *node) bool {
	if len(x.members) != len(y.members) || x.restAs != y.restAs {
		return true
	}
	for _, m := range x.members {
		i, ok := y.bySent[m.sent]
		if !ok || m.differs(y.members[i]) {
			return true
		}
	}
	return false
}

// differs reports whether no answer fits both members.
func (m member) differs(o member) bool {
	mine, others := m.answers(), o.answers()
	if mine&others == 0 {
		return true
	}
	x, y := m.node.end(), o.node.end()
	if mine&others&^(x.answer()&y.answer()) != 0 || len(x.enum) == 0 || len(y.enum) == 0 {
		return false
	}
	return !slices.ContainsFunc(x.enum, func(v *value) bool { return y.lists(v) })
}

// answers returns the types of answers for the member, including null.
func (m member) answers() kinds {
	k := m.node.allKinds((*node).answer)
	if !m.required || m.node.takesNull() {
		k |= nulls
	}
	return k
}

// allKinds returns the types of a node, or of all branches of a union. A union that is not settled
// yet may still become text.
func (n *node) allKinds(of func(*node) kinds) kinds {
	n = n.end()
	if n.shape != shapeUnion {
		return of(n)
	}
	leaves, ok := n.leaves()
	if !ok || !n.settled {
		return anything
	}
	var k kinds
	for _, l := range leaves {
		k |= of(l)
	}
	return k
}

// lists reports whether a scalar is in the enum, if there is one.
func (n *node) lists(v *value) bool {
	return len(n.enum) == 0 || slices.ContainsFunc(n.enum, func(e *value) bool { return equal(e, v) })
}

// distinguishFirst moves a member that no other object has to the start of each object whose first
// member another one starts with. It reports whether all start differently.
func distinguishFirst(objects []*node) bool {
	first := func(n *node) string {
		if len(n.members) == 0 {
			return n.restAs
		}
		return n.members[0].sent
	}
	for _, n := range objects {
		others := slices.DeleteFunc(slices.Clone(objects), func(o *node) bool { return o == n })
		if !slices.ContainsFunc(others, func(o *node) bool { return first(o) == first(n) }) {
			continue
		}
		i := slices.IndexFunc(n.members, func(m member) bool {
			return !slices.ContainsFunc(others, func(o *node) bool { _, has := o.bySent[m.sent]; return has })
		})
		if i > 0 {
			m := n.members[i]
			n.members = slices.Insert(slices.Delete(n.members, i, i+1), 0, m)
			for j, m := range n.members {
				n.byName[m.name], n.bySent[m.sent] = j, j
			}
		}
	}
	seen := map[string]bool{}
	for _, n := range objects {
		if seen[first(n)] {
			return false
		}
		seen[first(n)] = true
	}
	return true
}

// glimpse is what is compared of a member: its type, and a scalar's value.
type glimpse struct {
	kind   kinds
	scalar *value
}

// fits reports whether an object has the shape of n: as an answer, or as a value of the schema. whole
// also requires the optional members of an answer.
func (n *node) fits(seen map[string]glimpse, answer, whole bool) bool {
	known := 0
	for _, m := range n.members {
		name, of := m.name, (*node).source
		if answer {
			name, of = m.sent, (*node).answer
		}
		g, present := seen[name]
		switch {
		case !present && (m.required || answer && whole):
			return false
		case !present:
			continue
		case g.kind == nulls && (m.node.takesNull() || answer && !m.required):
		case !m.node.allKinds(of).has(g.kind):
			return false
		case g.scalar != nil && !m.node.end().lists(g.scalar):
			return false
		}
		known++
	}
	if n.rest == nil {
		return known == len(seen)
	}
	if _, present := seen[n.restAs]; answer && present {
		known++
	} else if answer && whole {
		return false
	}
	return !answer || known == len(seen)
}

// untaggedBranch returns the branch that the next object fits best; nil if there is none.
func (r *restorer) untaggedBranch(n *node) *node {
	at := r.i
	defer func() { r.i = at }()
	seen := map[string]glimpse{}
	for r.i++; r.next('}'); {
		name := string(r.name())
		g := glimpse{kind: r.kind()}
		from := r.i
		r.skip()
		if g.kind != objects && g.kind != arrays {
			g.scalar = read(r.src[from:r.i])
		}
		seen[name] = g
	}
	for _, whole := range []bool{true, false} {
		for _, leaf := range n.untagged {
			if leaf.fits(seen, true, whole) {
				return leaf
			}
		}
	}
	return nil
}

// untaggedSource returns the branch that an object of the schema fits; nil if there is none.
func (n *node) untaggedSource(v *value) *node {
	seen := map[string]glimpse{}
	for _, f := range v.fields {
		g := glimpse{kind: f.value.kind}
		if g.kind != objects && g.kind != arrays {
			g.scalar = f.value
		}
		seen[f.name] = g
	}
	for _, leaf := range n.untagged {
		if leaf.fits(seen, false, false) {
			return leaf
		}
	}
	return nil
}
