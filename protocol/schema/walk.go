package schema

import (
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"
)

// How keywords hold subschemas, by the vocabularies of 2020-12 plus the older
// spellings definitions, dependencies and array-valued items.
var (
	holdOne  = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	holdList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	holdMap  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}

	// deeper are the keywords that count as a step of nesting depth (OpenWOP
	// envelope contract §20).
	deeper = []string{"$defs", "anyOf", "items", "properties"}
)

// position is a place of a schema document where a schema stands. Properties,
// examples and enums that merely look like schemas are not positions.
type position struct {
	object map[string]any // nil for the schemas true and false
	value  any
	index  int       // in the order of walk
	up     *position // nil for the whole
	// keyword of up that holds it, and by what name or number if it holds several.
	keyword, name string
	several       bool
	depth         int
	step          bool // depth grew on the way here
	steps, length int  // tokens and bytes of its pointer
}

// pointer is the place of the position, or of a part of it. It is made when it is
// asked for: names may be long, and hold many positions.
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
	return pointerOf(append(tokens, below...)...)
}

// child is the position reached from p through a keyword.
func (p *position) child(value any, keyword string) *position {
	c := &position{value: value, up: p, keyword: keyword, depth: p.depth, steps: p.steps + 1, length: p.length + 1 + len(keyword)}
	c.object, _ = value.(map[string]any)
	if c.step = slices.Contains(deeper, keyword); c.step {
		c.depth++
	}
	return c
}

// oneOf is child for a keyword that holds several.
func (p *position) oneOf(value any, keyword, name string) *position {
	c := p.child(value, keyword)
	c.name, c.several = name, true
	c.steps++
	c.length += 1 + written(name)
	return c
}

// written is how many bytes a name has in a pointer and in a location, where what is
// no plain letter is escaped.
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

// walk yields every schema position of doc, outer before inner, in an order
// that depends on the document alone. It does not follow references, so it ends.
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

// isSchema tells schemas from lists of names, as dependencies may hold either.
func isSchema(v any) bool {
	switch v.(type) {
	case bool, map[string]any:
		return true
	}
	return false
}
