package schema

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// leaf is a violation on its way out, with what union pruning needs to know.
type leaf struct {
	Violation
	at      []string // tokens of InstancePath
	allowed []any    // of an enum or const
}

// collector turns the library's tree of errors into leaves.
type collector struct {
	doc any // the schema document; nil if its members are not to be looked up
}

func violationsOf(leaves []leaf) []Violation {
	vs := make([]Violation, len(leaves))
	for i, l := range leaves {
		vs[i] = l.Violation
	}
	return vs
}

// leaves gives the innermost causes of e.
func (c collector) leaves(e *jsonschema.ValidationError) []leaf {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return c.union(e)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return c.union(e)
		}
	case *kind.Required:
		return c.each(e, k.Missing, func(l *leaf, name string) { l.Message += name })
	case *kind.AdditionalProperties:
		return c.each(e, k.Properties, func(l *leaf, name string) { l.place(append(slices.Clip(l.at), name)) })
	case *kind.PropertyNames:
		return c.memberName(e, k.Property)
	}
	if len(e.Causes) == 0 {
		return []leaf{c.leaf(e)}
	}
	var all []leaf
	for _, cause := range e.Causes {
		all = append(all, c.leaves(cause)...)
	}
	return all
}

// place moves the leaf to another value of the document.
func (l *leaf) place(at []string) {
	l.at, l.InstancePath = at, pointerOf(at...)
}

// leaf makes the leaf for e itself.
func (c collector) leaf(e *jsonschema.ValidationError) leaf {
	l := leaf{Violation: Violation{SchemaPath: fragment(e.SchemaURL), Keyword: "false"}}
	l.place(e.InstanceLocation)
	if e.ErrorKind == nil {
		l.Message = "does not satisfy the schema"
		return l
	}
	if path := e.ErrorKind.KeywordPath(); len(path) > 0 {
		l.Keyword = path[0]
		l.SchemaPath += pointerOf(path...)
	}
	l.Message = describe(e.ErrorKind)
	switch k := e.ErrorKind.(type) {
	case *kind.Enum:
		l.allowed = k.Want
	case *kind.Const:
		l.allowed = []any{k.Want}
	case *kind.FalseSchema:
		c.closed(&l)
	case *kind.AdditionalProperties:
		l.Message += c.members(fragment(e.SchemaURL))
	}
	return l
}

// each makes one leaf per name of e.
func (c collector) each(e *jsonschema.ValidationError, names []string, adapt func(*leaf, string)) []leaf {
	all := make([]leaf, len(names))
	for i, name := range names {
		all[i] = c.leaf(e)
		adapt(&all[i], name)
	}
	return all
}

// closed names the keyword behind a schema that is just false.
func (c collector) closed(l *leaf) {
	for _, k := range []string{"unevaluatedProperties", "additionalProperties"} {
		if of, ok := strings.CutSuffix(l.SchemaPath, "/"+k); ok {
			l.Keyword, l.Message = k, "additional member not allowed"+c.members(of)
		}
	}
}

// memberName is for a member whose name, not its value, is wrong.
func (c collector) memberName(e *jsonschema.ValidationError, name string) []leaf {
	l := c.leaf(e)
	l.SchemaPath = fragment(e.SchemaURL) // ends in the keyword already
	l.place(append(slices.Clip(l.at), name))
	for _, cause := range e.Causes {
		for _, inner := range c.leaves(cause) {
			l.Message = "member name not allowed: " + inner.Message
			return []leaf{l}
		}
	}
	return []leaf{l}
}

// members says which members the object schema at the pointer knows.
func (c collector) members(pointer string) string {
	const most = 16
	object, _ := lookup(c.doc, pointer)
	properties, _ := object["properties"].(map[string]any)
	names := sortedKeys(properties)
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return "; allowed: " + strings.Join(names[:most], ", ") + ", ..."
	}
	return "; allowed: " + strings.Join(names, ", ")
}

// union picks, of a failed anyOf or oneOf, the branches that the document seems
// to mean: those of the right type and discriminator. If no discriminator fits,
// the allowed ones are the message.
func (c collector) union(e *jsonschema.ValidationError) []leaf {
	branches := make([][]leaf, 0, len(e.Causes))
	for _, cause := range e.Causes {
		branches = append(branches, c.leaves(cause))
	}
	here := len(e.InstanceLocation)
	branches = preferring(branches, func(l leaf) bool { return len(l.at) == here && l.Keyword == "type" })
	isTag := func(l leaf) bool { return len(l.at) == here+1 && l.allowed != nil }
	branches = preferring(branches, isTag)

	all := slices.Concat(branches...)
	tags := slices.DeleteFunc(slices.Clone(all), func(l leaf) bool { return !isTag(l) })
	if len(branches) < 2 || len(tags) < len(branches) || !oneplace(tags) {
		return all
	}
	tag := tags[0]
	tag.allowed = slices.Clone(tag.allowed) // the schema's own
	for _, t := range tags[1:] {
		tag.allowed = append(tag.allowed, t.allowed...)
	}
	tag.Keyword, tag.Message = "enum", describe(&kind.Enum{Want: tag.allowed})
	tag.SchemaPath = fragment(e.SchemaURL) + pointerOf(e.ErrorKind.KeywordPath()...)
	return []leaf{tag}
}

// preferring drops the branches with a leaf that is off, unless all have one.
func preferring(branches [][]leaf, off func(leaf) bool) [][]leaf {
	var on [][]leaf
	for _, b := range branches {
		if !slices.ContainsFunc(b, off) {
			on = append(on, b)
		}
	}
	if len(on) == 0 {
		return branches
	}
	return on
}

// oneplace reports whether all leaves are about the same value.
func oneplace(leaves []leaf) bool {
	return !slices.ContainsFunc(leaves, func(l leaf) bool { return l.InstancePath != leaves[0].InstancePath })
}
