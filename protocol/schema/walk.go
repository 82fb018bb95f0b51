package schema

import (
	"iter"
	"slices"
	"strconv"
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
	path   []string
	depth  int
	step   bool // depth grew on the way here
}

// pointer is the place of the position, or of a part of it.
func (p position) pointer(below ...string) string {
	return pointerOf(p.path...) + pointerOf(below...)
}

// child is the position reached from p through a keyword.
func (p position) child(value any, keyword string, rest ...string) position {
	c := position{value: value, path: slices.Concat(p.path, []string{keyword}, rest), depth: p.depth}
	c.object, _ = value.(map[string]any)
	if c.step = slices.Contains(deeper, keyword); c.step {
		c.depth++
	}
	return c
}

// walk yields every schema position of doc, outer before inner, in an order
// that depends on the document alone. It does not follow references, so it ends.
func walk(doc any) iter.Seq[position] {
	return func(yield func(position) bool) {
		root := position{value: doc}
		root.object, _ = doc.(map[string]any)
		root.visit(yield)
	}
}

func (p position) visit(yield func(position) bool) bool {
	if !yield(p) {
		return false
	}
	for _, c := range p.children() {
		if !c.visit(yield) {
			return false
		}
	}
	return true
}

func (p position) children() []position {
	var cs []position
	for _, k := range holdOne {
		if v, ok := p.object[k]; ok && isSchema(v) {
			cs = append(cs, p.child(v, k))
		}
	}
	for _, k := range holdList {
		list, _ := p.object[k].([]any)
		for i, v := range list {
			cs = append(cs, p.child(v, k, strconv.Itoa(i)))
		}
	}
	for _, k := range holdMap {
		m, _ := p.object[k].(map[string]any)
		for _, name := range sortedKeys(m) {
			if isSchema(m[name]) {
				cs = append(cs, p.child(m[name], k, name))
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
