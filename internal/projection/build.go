package projection

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Limits of an expanded schema: references in allOf and nested unions multiply.
const (
	// maxSource and maxWeight limit the size and the weight (protocol/schema) of a source schema:
	// it is compiled, projected, written and checked within 16 MB.
	maxSource = 64 << 10
	maxWeight = 11_000

	maxNodes = 8_000
	maxNest  = 200
	// maxWork limits comparisons of names, and of enum values with types.
	maxWork = 1 << 21
	// maxWritten limits the size of a projection; a larger one could not be compiled.
	maxWritten = 256 << 10
	// maxPlaces limits the paths of the projection, in bytes, because names may be long.
	maxPlaces = 2 << 20
)

// structural are the keywords that define a value; the others annotate it or hold definitions.
var structural = []string{
	"type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties",
	"propertyNames", "unevaluatedProperties",
	"minProperties", "maxProperties", "dependentRequired", "items", "prefixItems", "contains",
	"minContains", "maxContains", "minItems", "maxItems",
	"uniqueItems", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
	"exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"anyOf", "oneOf", "allOf", "$ref", "contentEncoding", "contentMediaType",
}

// builder converts a schema to nodes.
type builder struct {
	dialect  Dialect
	places   map[string]*value // by "#/pointer" and "#anchor"
	id       string
	defs     map[string]*def // by path
	aliases  []*def
	unions   []*node
	nodes    int
	nest     int
	work     int
	isFull   bool
	problems []Problem
	rewrites []Problem
	// rewritten are the bytes of the paths of rewrites.
	rewritten int
	// source returns the path in the source of a path in the converted schema.
	source func(string) string
}

func newBuilder(d Dialect, root *value) *builder {
	b := &builder{dialect: d, places: map[string]*value{}, defs: map[string]*def{}}
	if id := root.get("$id"); id != nil {
		b.id = strings.TrimSuffix(id.plain, "#")
	}
	b.index(root)
	return b
}

// index records the possible targets of references: the schemas of the document.
func (b *builder) index(v *value) {
	b.places["#"+v.at] = v
	if a := v.get("$anchor"); a != nil && a.kind == strs {
		b.places["#"+a.plain] = v
	}
	v.schemas(func(c *value, _, _ string, _ bool) { b.index(c) })
}

func (b *builder) problem(at, rule, format string, args ...any) {
	b.problems = append(b.problems, Problem{
		Vendor:  b.dialect.Vendor,
		Path:    at,
		Rule:    rule,
		Message: fmt.Sprintf(format, args...),
	})
}

// maxRewrites and maxRewritten limit the recorded rewrites, in number and in bytes of their paths.
const (
	maxRewrites  = 256
	maxRewritten = 64 << 10
)

// rewrite records that a schema, or a part of it, is sent in another form.
func (b *builder) rewrite(at string, below []string, rule, format string, args ...any) {
	if b.rewritten += len(at); len(b.rewrites) == maxRewrites || b.rewritten > maxRewritten {
		return
	}
	for _, token := range below {
		at += pointer(token)
	}
	b.rewrites = append(b.rewrites, Problem{b.dialect.Vendor, at, rule, fmt.Sprintf(format, args...)})
}

// build returns the node of a schema.
func (b *builder) build(s *value) *node {
	b.nest++
	defer func() { b.nest-- }()
	if !b.room(1) {
		return &node{at: s.at, shape: shapeText, takes: anything}
	}
	if s.kind == booleans {
		if s.is(false) {
			return &node{at: s.at}
		}
		return b.text(s, anything)
	}
	ts, ok := b.terms(s, map[string]bool{})
	if !ok {
		return b.text(s, anything)
	}
	switch {
	case len(ts) == 0:
		return b.text(s, anything)
	case len(ts) == 1 && ts[0].target != nil:
		return b.reference(s, ts[0].target)
	}
	if s.get("allOf") != nil {
		b.rewrite(s.at, []string{"allOf"}, RewriteMerged, "sent as one schema")
	}
	whole, ok := b.merged(s, ts)
	if !ok {
		return b.text(s, anything)
	}
	if whole.kind == booleans {
		return &node{at: s.at}
	}
	n := b.typed(whole)
	n.at = s.at
	if about := s.get("description"); about != nil {
		n.about = about.plain
	}
	return n
}

// room counts written or copied places; false if there are too many, or they are too deep.
func (b *builder) room(n int) bool {
	if b.nodes += n; b.nodes <= maxNodes && b.nest <= maxNest {
		return true
	}
	b.full("written out, the schema has more than %d places or %d levels; use fewer references in allOf and fewer unions in unions", maxNodes, maxNest)
	return false
}

// spend counts comparisons; false if there are too many.
func (b *builder) spend(n int) bool {
	if b.work += n; b.work <= maxWork {
		return true
	}
	b.full("written out, the schema has too many values in enums, or tags in unions; list fewer")
	return false
}

// full reports a lack of room once.
func (b *builder) full(format string, args ...any) {
	if !b.isFull {
		b.isFull = true
		b.problem("", RuleTooLarge, format, args...)
	}
}

// typed returns the node of a schema without references and allOf.
func (b *builder) typed(s *value) *node {
	if s.get("anyOf") != nil || s.get("oneOf") != nil {
		return b.union(s)
	}
	if s.get("enum") != nil || s.get("const") != nil {
		return b.enum(s)
	}
	types := typesOf(s)
	nullable := slices.Contains(types, "null")
	some := slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
	switch {
	case types == nil:
		return b.text(s, anything)
	case len(some) == 0:
		return b.described(&node{at: s.at, shape: shapeScalar, typ: "null"}, s)
	case len(some) == 1:
		n := b.single(s, some[0])
		n.nullable = nullable
		if nullable && n.shape == shapeNever {
			return &node{at: s.at, shape: shapeScalar, typ: "null"}
		}
		return n
	}
	n := b.described(&node{at: s.at, shape: shapeUnion, nullable: nullable}, s)
	for _, t := range some {
		n.branches = append(n.branches, b.single(s.without("description"), t))
	}
	b.unions = append(b.unions, n)
	return n
}

// single returns the node of a schema for values of one type.
func (b *builder) single(s *value, typ string) *node {
	switch typ {
	case "object":
		return b.object(s)
	case "array":
		return b.array(s)
	}
	n := b.described(&node{at: s.at, shape: shapeScalar, typ: typ}, s)
	b.constrain(n, s, kindOf(typ))
	return n
}

// described sets the author's description on a node.
func (b *builder) described(n *node, s *value) *node {
	if about := s.get("description"); about != nil {
		n.about = about.plain
	}
	return n
}

// text represents a schema as JSON in a string.
func (b *builder) text(s *value, takes kinds) *node {
	n := b.described(&node{at: s.at, shape: shapeText, takes: takes}, s)
	b.rewrite(s.at, nil, RewriteText, "sent as JSON text in a string")
	what := "Any JSON value, written as JSON text."
	switch takes {
	case objects:
		what = "A JSON object, written as JSON text."
	case arrays:
		what = "A JSON array, written as JSON text."
	}
	n.notes = append(n.notes, what)
	if rules := spelled(s); rules != "" {
		n.notes = append(n.notes, "It satisfies this JSON Schema: "+rules)
	}
	return n
}

// typesOf returns the types a schema allows; a missing type is derived from the keywords. nil: any.
func typesOf(s *value) []string {
	switch t := s.get("type"); {
	case t == nil:
	case t.kind == strs:
		return []string{t.plain}
	default:
		return t.texts()
	}
	for _, hint := range hints {
		for _, k := range hint.keywords {
			if s.get(k) != nil {
				return []string{hint.typ}
			}
		}
	}
	return nil
}

var hints = []struct {
	typ      string
	keywords []string
}{
	{
		"object",
		[]string{
			"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
			"unevaluatedProperties", "minProperties", "maxProperties", "dependentRequired",
		},
	},
	{"array", []string{"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"}},
	{"string", []string{"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

// resolve returns the target of a reference.
func (b *builder) resolve(ref string) (*value, bool) {
	if b.id != "" {
		ref = strings.TrimPrefix(ref, b.id)
	}
	if ref == "" {
		ref = "#"
	}
	if plain, err := url.PathUnescape(ref); err == nil {
		ref = plain
	}
	v, ok := b.places[ref]
	return v, ok
}

// reference returns a node that refers to the node of another place.
func (b *builder) reference(s, target *value) *node {
	n := b.described(&node{at: s.at, shape: shapeRef}, s)
	d, ok := b.defs[target.at]
	if !ok {
		d = &def{at: target.at}
		b.defs[target.at] = d
		d.node = b.build(target)
	}
	n.target = d
	b.aliases = append(b.aliases, d)
	return n
}

// endless finds definitions that consist only of references to each other.
func (b *builder) endless() bool {
	for _, d := range b.aliases {
		n := d.node
		for range len(b.defs) {
			if n.shape != shapeRef {
				break
			}
			n = n.target.node
		}
		if n.shape == shapeRef {
			b.problem(d.at, RuleReference, "the references lead in a circle without saying anything; write the schema where one of them stands")
			return true
		}
	}
	return false
}
