package sample

// settle chooses a branch of the first open union and lays it over f.
func (g *generator) settle(f *flat, at place) error {
	union := f.unions[0]
	f.unions = f.unions[1:]
	branches, err := g.branches(f, union, at.depth <= roomy)
	if err != nil {
		return err
	}
	if len(branches) == 0 {
		f.never = true
		return nil
	}
	i := 0
	if at.depth > roomy {
		i = g.shortest(branches)
	} else if i, err = g.chooseBranch(branches, at); err != nil {
		return err
	}
	return g.lay(f, branches[i], 0)
}

// branches are those of the union that agree with what is already known. While
// there is room for more, null is among them only if nothing else is.
func (g *generator) branches(f *flat, union []any, roomy bool) ([]any, error) {
	var some, null []any
	for _, b := range union {
		probe, err := g.flatten(f.bare(), b)
		if err != nil {
			return nil, err
		}
		switch {
		case probe.never:
		case roomy && probe.kind() == "null":
			null = append(null, b)
		default:
			some = append(some, b)
		}
	}
	if len(some) == 0 {
		return null, nil
	}
	return some, nil
}

// bare is what of f says which branches are possible.
func (f *flat) bare() *object {
	o := newObject()
	for _, name := range []string{"type", "enum"} {
		if f.has(name) {
			o.set(name, f.values[name])
		}
	}
	return o
}

// chooseBranch takes the branch the subject speaks of most. A branch is known by
// its title and its discriminators, the members with a single value.
func (g *generator) chooseBranch(branches []any, at place) (int, error) {
	list := make([]*alternative, len(branches))
	for i, b := range branches {
		f, err := g.flatten(b)
		if err != nil {
			return 0, err
		}
		label := f.text("title")
		for _, v := range f.list("enum") {
			label += " " + labelOf(v)
		}
		props := f.object.object("properties")
		for _, name := range props.names {
			label += " " + discriminator(props.values[name])
		}
		list[i] = newAlternative(label)
		list[i].about(f.text("description"), weightAbout)
		inside := key(f.object)
		if err := g.spend(len(inside) / 64); err != nil { // a large branch is read for every value
			return 0, err
		}
		list[i].about(inside, weightInside)
	}
	return g.choose(list, at), nil
}

// discriminator is the only value a member may have; empty if it may have more.
func discriminator(schema any) string {
	s, ok := schema.(*object)
	if !ok {
		return ""
	}
	if v, ok := s.values["const"]; ok {
		return labelOf(v)
	}
	if list := s.list("enum"); len(list) == 1 {
		return labelOf(list[0])
	}
	return ""
}

// shortest is the branch that ends soonest.
func (g *generator) shortest(branches []any) int {
	best, least := 0, maxHeight+1
	for i, b := range branches {
		if h := g.height(b, maxHeight); h < least {
			best, least = i, h
		}
	}
	return best
}

// maxHeight is how far height looks.
const maxHeight = 8

// height is how deep the smallest value of a schema is, budget+1 if deeper than
// budget. A schema that cannot be followed counts as deep.
func (g *generator) height(schema any, budget int) int {
	f, err := g.flatten(schema)
	if budget < 0 || err != nil || f.never {
		return budget + 1
	}
	deepest := 0
	for _, union := range f.unions {
		least := budget + 1
		for _, b := range union {
			least = min(least, g.height(b, budget-1))
		}
		deepest = max(deepest, least)
	}
	switch {
	case f.has("enum") || f.allows(nil) && f.has("type"):
		return deepest
	case f.kind() == "object":
		props := f.object.object("properties")
		for _, name := range f.texts("required") {
			deepest = max(deepest, 1+g.height(props.values[name], budget-1))
		}
	case f.kind() == "array" && f.count("minItems", 0) > 0:
		deepest = max(deepest, 1+g.height(f.values["items"], budget-1))
	}
	return deepest
}
