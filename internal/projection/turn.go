package projection

import "encoding/json"

// TurnKind is an envelope kind that a turn can contain.
type TurnKind struct {
	Name string
	// Schema is the schema of the kind's payload.
	Schema json.RawMessage
	// Rendered means that its envelopes may contain a rendering.
	Rendered bool
	// Without are optional members that the model is not offered.
	Without []string
}

// TurnMember is the member of a turn that lists its envelopes.
const TurnMember = "envelopes"

// rendering is the schema of meta with its rendering hint (OpenWOP envelope contract §13).
const rendering = `{"type":"object","description":"How to show the payload. Leave it out if in doubt.",` +
	`"additionalProperties":false,"properties":{"rendering":{"type":"object","additionalProperties":false,"properties":{` +
	`"display":{"enum":["markdown","code","card","image","audio","file"]},"lang":{"type":"string"},"title":{"type":"string"}}}}}`

// Turn returns the schema of a model's turn: an object that lists envelopes, each of one of the kinds,
// distinguished by type (OpenWOP envelope contract §4.2, RFC 0031 §A). The object is at the root because
// vendors allow no union there.
func Turn(kinds []TurnKind) json.RawMessage {
	var branches []*value
	defs := &value{kind: objects}
	taken := map[string]bool{}
	for _, k := range kinds {
		payload := readSchema(k.Schema)
		payload.withhold(k.Without)
		switch {
		case payload.nested():
			at := plainName(k.Name, taken)
			taken[at] = true
			payload.embed("#/$defs/" + at)
			defs.fields = append(defs.fields, field{at, payload})
			payload = object(field{"$ref", text("#/$defs/" + at)})
		case payload.kind == objects:
			payload = payload.without("$schema", "$id")
		}
		members := object(
			field{"type", object(field{"type", text("string")}, field{"enum", list("", []*value{text(k.Name)})})},
			field{"payload", payload})
		if k.Rendered {
			members.fields = append(members.fields, field{"meta", read([]byte(rendering))})
		}
		branches = append(branches, closed(members, "type", "payload"))
	}
	items := object(field{"anyOf", list("", branches)})
	envelopes := object(field{"type", text("array")}, field{"minItems", &value{kind: numbers, plain: "1"}}, field{"items", items})
	root := closed(object(field{TurnMember, envelopes}), TurnMember)
	if len(defs.fields) > 0 {
		root.fields = append(root.fields, field{"$defs", defs})
	}
	return root.append(nil)
}

// withhold removes properties from a schema and the schemas below it.
func (v *value) withhold(names []string) {
	for i, f := range v.fields {
		if f.name == "properties" {
			v.fields[i].value = f.value.without(names...)
		}
	}
	v.schemas(func(c *value, _, _ string, _ bool) { c.withhold(names) })
}

// nested reports whether a schema refers to itself or to parts of itself, or names parts of itself.
func (v *value) nested() bool {
	for _, f := range v.fields {
		switch f.name {
		case "$ref", "$dynamicRef", "$defs", "definitions", "$anchor", "$dynamicAnchor":
			return true
		}
	}
	found := false
	v.schemas(func(c *value, _, _ string, _ bool) { found = found || c.get("$id") != nil || c.nested() })
	return found
}

func text(s string) *value { return &value{kind: strs, plain: s} }

func object(fields ...field) *value { return &value{kind: objects, fields: fields} }

// closed returns the schema of an object with these members and no others.
func closed(members *value, required ...string) *value {
	names := make([]*value, 0, len(required))
	for _, name := range required {
		names = append(names, text(name))
	}
	return object(
		field{"type", text("object")},
		field{"additionalProperties", &value{kind: booleans, plain: "false"}},
		field{"required", list("", names)},
		field{"properties", members},
	)
}
