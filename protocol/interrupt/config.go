package interrupt

import (
	"encoding/json"
	"maps"
	"slices"
)

// The shapes of the data, by kind.
var dataShapes = map[Kind]string{
	Approval:      "approval",
	Clarification: "clarification",
	ExternalEvent: "external-event",
	Custom:        "custom",
	LowConfidence: "low-confidence",
}

// ConfigSchema returns the closed JSON Schema of the config of an interrupt node: the schemas that Check
// applies, joined. Members that begin with x- are left to authors.
func ConfigSchema(typeID string) json.RawMessage {
	out := shapeDoc("config")
	out["title"], out["description"] = "Config of "+typeID, configDescriptions[typeID]
	switch typeID {
	case TypeApprovalGate:
		out.add(shapeDoc("approval"))
	case TypeClarificationGate:
		out.add(shapeDoc("clarification"))
	case TypeInterrupt:
		out.add(shapeDoc("interrupt"))
		var rules []any
		for _, kind := range slices.Sorted(maps.Keys(dataShapes)) {
			data := shapeDoc(dataShapes[kind])
			out.hoist(data)
			data.close()
			rules = append(rules, map[string]any{
				"if":   map[string]any{"required": []any{"kind"}, "properties": map[string]any{"kind": map[string]any{"const": kind}}},
				"then": map[string]any{"properties": map[string]any{"data": data}},
			})
		}
		out["allOf"] = rules
	}
	out.close()
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic("interrupt: " + err.Error()) // embedded documents
	}
	return doc
}

var configDescriptions = map[string]string{
	TypeApprovalGate:      "Asks for an approval.",
	TypeClarificationGate: "Asks questions.",
	TypeInterrupt:         "Asks for an answer of any kind; kind decides what data has.",
}

// shapeObject is the schema of an object.
type shapeObject map[string]any

func shapeDoc(name string) shapeObject {
	var out shapeObject
	if err := json.Unmarshal(shapes()[name].Document(), &out); err != nil {
		panic("interrupt: " + err.Error()) // embedded documents, compiled before
	}
	return out
}

// add adds the members of another schema.
func (o shapeObject) add(other shapeObject) {
	o.hoist(other)
	properties, _ := o["properties"].(map[string]any)
	more, _ := other["properties"].(map[string]any)
	maps.Copy(properties, more)
	required, _ := o["required"].([]any)
	also, _ := other["required"].([]any)
	o["required"] = append(required, also...)
}

// hoist moves the definitions of another schema here, where references find them.
func (o shapeObject) hoist(other shapeObject) {
	defs, _ := other["$defs"].(map[string]any)
	if defs == nil {
		return
	}
	if all, ok := o["$defs"].(map[string]any); ok {
		maps.Copy(all, defs)
	} else {
		o["$defs"] = maps.Clone(defs)
	}
	delete(other, "$defs")
}

// close forbids unknown members.
func (o shapeObject) close() {
	o["additionalProperties"] = false
	o["patternProperties"] = map[string]any{"^x-": true}
}
