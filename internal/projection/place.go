package projection

import (
	"slices"
	"strconv"
)

// Keywords that hold one schema, a list of schemas, or schemas by name.
var (
	holdOne = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
		"not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	holdList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	holdMap  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// readSchema returns the value of a schema document. Only schemas get their path, because there are
// many values and paths may be long.
func readSchema(doc []byte) *value {
	v := read(doc)
	v.place("")
	return v
}

// place sets the path of a schema, and of those below it.
func (v *value) place(at string) {
	v.at = at
	v.schemas(func(c *value, keyword, name string, several bool) {
		below := at + pointer(keyword)
		if several {
			below += pointer(name)
		}
		c.place(below)
	})
}

// schemas yields the subschemas of v.
func (v *value) schemas(yield func(c *value, keyword, name string, several bool)) {
	for _, f := range v.fields {
		c := f.value
		switch {
		case c.kind == arrays && slices.Contains(holdList, f.name):
			for i, item := range c.items {
				yield(item, f.name, strconv.Itoa(i), true)
			}
		case c.kind == objects && slices.Contains(holdMap, f.name):
			for _, m := range c.fields {
				yield(m.value, f.name, m.name, true)
			}
		case slices.Contains(holdOne, f.name):
			yield(c, f.name, "", false)
		}
	}
}

// notes are keywords that are read although they do not restrict values.
var notes = []string{"description", "propertyOrdering", "$id", "$anchor", "$defs", "definitions"}

// known removes, here and below, keywords that this package ignores, because merging would copy
// them.
func (v *value) known() *value {
	if v.kind != objects {
		return v
	}
	v.fields = slices.DeleteFunc(v.fields, func(f field) bool {
		_, bad := refused[f.name]
		return !bad && !slices.Contains(structural, f.name) && !slices.Contains(notes, f.name)
	})
	v.schemas(func(c *value, _, _ string, _ bool) { c.known() })
	return v
}
