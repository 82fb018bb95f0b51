package sample

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func (g *generator) object(w want, at place) error {
	g.out.WriteByte('{')
	for i, name := range w.members(at) {
		if i > 0 {
			g.out.WriteByte(',')
		}
		g.out.WriteString(text(name) + ":")
		member := place{path: at.path + "/" + name, name: name, depth: at.depth + 1, try: at.try}
		if err := g.value(member, w.memberSchemas(name)...); err != nil {
			return err
		}
	}
	g.out.WriteByte('}')
	return nil
}

// members returns the names of the members to make: the required ones in their order, then the
// optional ones by name while the document may grow, then invented ones up to minProperties. If
// members depend on each other, optional ones are left out.
func (w want) members(at place) []string {
	least, most := w.limits(func(s *jsonschema.Schema) (low, high *int) { return s.MinProperties, s.MaxProperties })
	names, optional := w.required(), []string{}
	grow := at.depth < roomy
	for _, s := range w.all {
		optional = slices.AppendSeq(optional, maps.Keys(s.Properties))
		grow = grow && s.If == nil && s.Not == nil && s.PropertyNames == nil && len(s.DependentRequired)+len(s.DependentSchemas) == 0
	}
	slices.Sort(optional)
	known := len(optional)
	for i := range min(least, maxFuel) { // more members than there are steps are never made
		optional = append(optional, "sample"+strconv.Itoa(i+1))
	}
	taken := map[string]bool{}
	for _, name := range names {
		taken[name] = true
	}
	for i, name := range optional {
		mayAdd := len(names) < least || grow && i < known && len(names) < most
		if mayAdd && !taken[name] && !slices.ContainsFunc(w.memberSchemas(name), isFalse) {
			taken[name], names = true, append(names, name)
		}
	}
	return names
}

// required returns the names of the required members.
func (w want) required() (names []string) {
	for _, s := range w.all {
		for _, name := range s.Required {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// memberSchemas returns the schemas of a member.
func (w want) memberSchemas(name string) (all []*jsonschema.Schema) {
	for _, s := range w.all {
		n := len(all)
		if p, ok := s.Properties[name]; ok {
			all = append(all, p)
		}
		for _, re := range slices.SortedFunc(maps.Keys(s.PatternProperties), func(a, b jsonschema.Regexp) int { return strings.Compare(a.String(), b.String()) }) {
			if re.MatchString(name) {
				all = append(all, s.PatternProperties[re])
			}
		}
		if len(all) > n {
			continue
		}
		switch p := s.AdditionalProperties.(type) {
		case bool:
			all = append(all, &jsonschema.Schema{Bool: &p})
		case *jsonschema.Schema:
			all = append(all, p)
		}
	}
	return all
}

// itemSchemas returns the schemas of the item at an index.
func (w want) itemSchemas(i int) (all []*jsonschema.Schema) {
	for _, s := range w.all {
		if i < len(s.PrefixItems) {
			all = append(all, s.PrefixItems[i])
		} else if s.Items2020 != nil {
			all = append(all, s.Items2020)
		}
		if i < containing(s) {
			all = append(all, s.Contains)
		}
	}
	return all
}

// containing returns how many items must satisfy contains.
func containing(s *jsonschema.Schema) int {
	switch {
	case s.Contains == nil:
		return 0
	case s.MinContains != nil:
		return *s.MinContains
	default:
		return 1
	}
}

func (g *generator) array(w want, at place) error {
	n, most := w.limits(func(s *jsonschema.Schema) (low, high *int) { return s.MinItems, s.MaxItems })
	var used map[string]bool
	for _, s := range w.all {
		n = max(n, containing(s))
		if at.depth < roomy {
			n = max(n, len(s.PrefixItems))
		}
		if s.UniqueItems {
			used = map[string]bool{}
		}
	}
	if n == 0 && at.depth < roomy && !slices.ContainsFunc(w.itemSchemas(0), isFalse) {
		n = 1
	}
	g.out.WriteByte('[')
	for i := range min(n, most) {
		if i > 0 {
			g.out.WriteByte(',')
		}
		item := place{path: at.path + "/" + strconv.Itoa(i), name: at.name, depth: at.depth + 1, used: used}
		if err := g.item(w.itemSchemas(i), item); err != nil {
			return err
		}
	}
	g.out.WriteByte(']')
	return nil
}

// item writes one item, which differs from the used ones.
func (g *generator) item(schemas []*jsonschema.Schema, at place) error {
	const tries = 64
	for start := g.out.Len(); at.try < tries; at.try++ {
		if err := g.value(at, schemas...); err != nil || at.used == nil {
			return err
		}
		item := string(g.out.Bytes()[start:])
		if !at.used[item] {
			at.used[item] = true
			return nil
		}
		g.out.Truncate(start)
	}
	return unfit("too few different items for /" + at.path)
}
