package projection

import (
	"encoding/json"
	"strings"
)

// Wrap returns a projection that leaves a valid schema as it is written, as the member "value" of an
// object. It is for tools, whose arguments are objects. nil: the schema describes an object already.
func Wrap(source json.RawMessage) *Projection {
	root := readSchema(source)
	if t := root.get("type"); t != nil && t.kind == strs && t.plain == "object" {
		return nil
	}
	if root.get("$id") == nil { // otherwise references are relative to it
		root.movePointers("#/properties/" + wrapAs)
	}
	out := append([]byte(`{"type":"object","properties":{"`+wrapAs+`":`), root.String()...)
	out = append(out, `},"required":["`+wrapAs+`"],"additionalProperties":false}`...)
	return &Projection{schema: out, wrapped: true}
}

// movePointers changes references by pointer, here and below, to a place inside another document.
func (v *value) movePointers(to string) {
	for i, f := range v.fields {
		if ref := f.value; f.name == "$ref" && ref.kind == strs && (ref.plain == "#" || strings.HasPrefix(ref.plain, "#/")) {
			v.fields[i].value = &value{kind: strs, plain: to + ref.plain[1:]}
		}
	}
	v.schemas(func(c *value, _, _ string, _ bool) { c.movePointers(to) })
}
