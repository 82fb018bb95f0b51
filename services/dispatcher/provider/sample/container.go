package sample

import (
	"regexp"
	"slices"
	"strconv"
)

// object makes the members in the order of the schema.
func (g *generator) object(f *flat, at place) (any, error) {
	out := newObject()
	for _, name := range g.members(f, at) {
		v, err := g.value(f.memberSchema(name), at.member(name))
		if err != nil {
			return nil, err
		}
		out.set(name, v)
	}
	return out, nil
}

// members are the names to make: the required ones, and the optional ones as
// long as there is room for them.
func (g *generator) members(f *flat, at place) []string {
	required := f.texts("required")
	// Members that depend on each other are safest left out.
	roomy := at.depth < roomy && !f.hasAny("if", "not", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames")
	least, most := f.count("minProperties", 0), f.count("maxProperties", 1<<40)
	left := most - len(slices.Compact(slices.Sorted(slices.Values(required))))
	var names []string
	for _, name := range f.object.object("properties").names {
		switch {
		case slices.Contains(required, name):
			names = append(names, name)
		case left > 0 && (roomy || len(names) < least) && f.memberSchema(name) != false:
			names = append(names, name)
			left--
		}
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return invent(names, least)
}

// invent adds names until there are enough; any will do.
func invent(names []string, least int) []string {
	taken := map[string]bool{}
	for _, name := range names {
		taken[name] = true
	}
	// More members than there are steps are never made.
	for i := 1; len(names) < min(least, maxFuel+1); i++ {
		if name := "sample" + strconv.Itoa(i); !taken[name] {
			names = append(names, name)
		}
	}
	return names
}

// memberSchema is what a member must satisfy: its property and every pattern its
// name matches, else additionalProperties.
func (f *flat) memberSchema(name string) any {
	var all []any
	if s, ok := f.object.object("properties").values[name]; ok {
		all = append(all, s)
	}
	patterns := f.object.object("patternProperties")
	for _, p := range patterns.names {
		if re, err := regexp.Compile(p); err == nil && re.MatchString(name) {
			all = append(all, patterns.values[p])
		}
	}
	switch len(all) {
	case 0:
		if s, ok := f.values["additionalProperties"]; ok {
			return s
		}
		return true
	case 1:
		return all[0]
	default:
		return allOf(all...)
	}
}

// array makes the items.
func (g *generator) array(f *flat, at place) (any, error) {
	fixed, rest := f.items()
	n := g.items(f, len(fixed), at)
	out := make([]any, 0, min(n, maxFuel))
	seen := map[string]bool{}
	for i := range n {
		schema := rest
		if i < len(fixed) {
			schema = fixed[i]
		}
		if f.has("contains") && i < f.count("minContains", 1) {
			schema = allOf(f.values["contains"], schema)
		}
		v, ok, err := g.item(schema, at.item(i), f.values["uniqueItems"] == true, seen)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, v)
		}
	}
	if len(out) < f.count("minItems", 0) {
		return nil, unfit("too few different items for " + at.String())
	}
	return out, nil
}

// items are the schemas of the first items, and of those after them.
func (f *flat) items() (fixed []any, rest any) {
	fixed, rest = f.list("prefixItems"), any(true)
	if s, ok := f.values["items"]; ok {
		rest = s
	}
	if old, ok := rest.([]any); ok { // drafts before 2020-12 wrote prefixItems as items
		fixed, rest = old, any(true)
		if s, ok := f.values["additionalItems"]; ok {
			rest = s
		}
	}
	return fixed, rest
}

// items is how many to make: one at least while there is room, else as few as
// allowed.
func (g *generator) items(f *flat, fixed int, at place) int {
	n := f.count("minItems", 0)
	if f.has("contains") {
		n = max(n, f.count("minContains", 1))
	}
	if at.depth < roomy {
		_, rest := f.items()
		switch {
		case fixed > 0:
			n = max(n, fixed)
		case rest != false:
			n = max(n, g.usual(rest))
		}
	}
	return min(n, f.count("maxItems", n))
}

// usual is how many items a list has that need not have any: as many labels as
// the subject speaks of, two strings, else one.
func (g *generator) usual(schema any) int {
	f, err := g.flatten(schema)
	if err != nil || f.never {
		return 0
	}
	if f.has("enum") {
		n := 0
		for _, a := range labels(f.list("enum"), f.text("description")) {
			if g.mentioned(a) {
				n++
			}
		}
		return max(n, 1)
	}
	if len(f.unions) == 0 && f.kind() == "string" {
		return 2
	}
	return 1
}

// item makes one item; ok is false if no further different one was found.
func (g *generator) item(schema any, at place, unique bool, seen map[string]bool) (v any, ok bool, err error) {
	const tries = 64
	for try := range tries {
		if v, err = g.value(g.without(schema, seen, unique), at.again(try)); err != nil {
			return nil, false, err
		}
		if k := key(v); !unique || !seen[k] {
			seen[k] = true
			return v, true, nil
		}
	}
	return nil, false, nil
}

// without takes the used values out of an enum, so that a list of different
// labels has the best first and never tries in vain.
func (g *generator) without(schema any, seen map[string]bool, unique bool) any {
	if !unique || len(seen) == 0 {
		return schema
	}
	f, err := g.flatten(schema)
	if err != nil || !f.has("enum") {
		return schema
	}
	left := slices.DeleteFunc(slices.Clone(f.list("enum")), func(v any) bool { return seen[key(v)] })
	if len(left) == 0 {
		return schema
	}
	only := newObject()
	only.set("enum", left)
	return allOf(schema, only)
}
