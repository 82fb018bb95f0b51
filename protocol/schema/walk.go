package schema

import (
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// The keywords that hold subschemas, from the vocabularies of 2020-12 and the older spellings
// definitions, dependencies and array-valued items.
var (
	holdOne  = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	holdList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	holdMap  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}

	// deeper are the keywords that count as a level of nesting (OpenWOP envelope contract §20).
	deeper = []string{"$defs", "anyOf", "items", "properties"}
)

// position is a schema position of a document. Properties, examples and enums that merely look like
// schemas are not positions.
type position struct {
	object map[string]any // nil for the schemas true and false
	value  any
	index  int       // in the order of walk
	up     *position // nil for the root
	// keyword of up that holds it, and its name or number if the keyword holds several.
	keyword, name string
	several       bool
	depth         int
	step          bool // depth increased at this position
	steps, length int  // tokens and bytes of its pointer
}

// pointer returns the path of the position, or of a part of it. It is computed on demand, because
// names may be long and hold many positions.
func (p *position) pointer(below ...string) string {
	tokens := make([]string, p.steps, p.steps+len(below))
	i := p.steps
	for q := p; q.up != nil; q = q.up {
		if q.several {
			i--
			tokens[i] = q.name
		}
		i--
		tokens[i] = q.keyword
	}
	return jsonpointer.Of(append(tokens, below...)...)
}

// child returns the position reached from p through a keyword.
func (p *position) child(value any, keyword string) *position {
	c := &position{value: value, up: p, keyword: keyword, depth: p.depth, steps: p.steps + 1, length: p.length + 1 + len(keyword)}
	c.object, _ = value.(map[string]any)
	if c.step = slices.Contains(deeper, keyword); c.step {
		c.depth++
	}
	return c
}

// oneOf is child for a keyword that holds several schemas.
func (p *position) oneOf(value any, keyword, name string) *position {
	c := p.child(value, keyword)
	c.name, c.several = name, true
	c.steps++
	c.length += 1 + written(name)
	return c
}

// written returns the bytes of a name in a pointer and a location, which escape special characters.
func written(name string) int {
	n := len(name)
	for i := range len(name) {
		switch c := name[i]; {
		case c == '~' || c == '/':
			n++
		case c >= utf8.RuneSelf || c <= ' ' || c == '%':
			n += 2
		}
	}
	return n
}

// walk yields every schema position of doc, outer before inner, in an order that depends only on
// the document. It does not follow references, so it always ends.
func walk(doc any) iter.Seq[*position] {
	return func(yield func(*position) bool) {
		root := &position{value: doc}
		root.object, _ = doc.(map[string]any)
		root.visit(yield, new(int))
	}
}

func (p *position) visit(yield func(*position) bool, index *int) bool {
	p.index = *index
	*index++
	if !yield(p) {
		return false
	}
	for _, c := range p.children() {
		if !c.visit(yield, index) {
			return false
		}
	}
	return true
}

func (p *position) children() []*position {
	var cs []*position
	for _, k := range holdOne {
		if v, ok := p.object[k]; ok && isSchema(v) {
			cs = append(cs, p.child(v, k))
		}
	}
	for _, k := range holdList {
		list, _ := p.object[k].([]any)
		for i, v := range list {
			cs = append(cs, p.oneOf(v, k, strconv.Itoa(i)))
		}
	}
	for _, k := range holdMap {
		m, _ := p.object[k].(map[string]any)
		for _, name := range sortedKeys(m) {
			if isSchema(m[name]) {
				cs = append(cs, p.oneOf(m[name], k, name))
			}
		}
	}
	return cs
}

// isSchema distinguishes schemas from lists of names: dependencies have either.
func isSchema(v any) bool {
	switch v.(type) {
	case bool, map[string]any:
		return true
	}
	return false
}
