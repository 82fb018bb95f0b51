package schema

import (
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
)

// null is a schema for null only.
var null = json.RawMessage(`{"type":"null"}`)

// nullable converts the keyword nullable of OpenAPI 3.0. It has an effect without type, too: that is
// what authors mean who write it next to $ref or allOf. wraps is true if the schema must become a
// branch of a union with null.
func (c *converter) nullable(o *members, at place) (wraps bool) {
	value := string(o.get("nullable"))
	if value != "true" && value != "false" {
		return false
	}
	o.drop("nullable")
	if value == "false" {
		c.note(at.old+"/nullable", "left out: it has no effect")
		return false
	}
	c.note(at.old+"/nullable", "null is allowed")
	restricts := func(m member) bool { return !isAnnotation(m.name) }
	switch {
	case !slices.ContainsFunc(o.list, restricts):
		return false
	case o.hasAny("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const"),
		o.get("type") == nil && o.get("enum") == nil:
		return true
	}
	o.addNull("enum", json.RawMessage("null"))
	if text, ok := strictjson.String(o.get("type")); ok {
		o.set("type", renderList([]json.RawMessage{strictjson.RenderPlain(text)}))
	}
	o.addNull("type", json.RawMessage(`"null"`))
	if types := listOf(o.get("type")); len(types) == 1 {
		o.set("type", types[0])
	}
	return false
}

// orNull returns a union of the schema and null. What annotates or identifies the schema, and its
// definitions, stay outside.
func (o *members) orNull() *members {
	outer, inner := &members{}, &members{}
	for _, m := range o.list {
		if isAnnotation(m.name) {
			outer.list = append(outer.list, m)
		} else {
			inner.list = append(inner.list, m)
		}
	}
	outer.set("anyOf", renderList([]json.RawMessage{inner.render(), null}))
	return outer
}

// addNull adds a value to a list, unless it is there.
func (o *members) addNull(name string, value json.RawMessage) {
	list := listOf(o.get(name))
	if list == nil || slices.ContainsFunc(list, func(v json.RawMessage) bool { return string(v) == string(value) }) {
		return
	}
	o.set(name, renderList(append(list, value)))
}

// listOf returns the items of a list; nil for any other value.
func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
