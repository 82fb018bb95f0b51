package schema

import (
	"encoding/json"
	"slices"
)

// untilComplete are the keywords that a document can violate only as long as it is incomplete.
var untilComplete = []string{
	"required", "minItems", "minProperties", "contains", "minContains", "maxContains", "dependentRequired", "dependentSchemas",
	"dependencies", "if", "then", "else", "not", "unevaluatedProperties", "unevaluatedItems",
}

// Growing returns the schema of documents that are still being written: present parts satisfy the
// schema, and missing ones may follow.
func (s *Schema) Growing() (*Schema, error) {
	return Compile(s.name, growing(s.source.Document))
}

func growing(source json.RawMessage) json.RawMessage {
	if len(source) == 0 || source[0] != '{' {
		return source
	}
	o := readMembers(source)
	o.list = slices.DeleteFunc(o.list, func(m member) bool { return slices.Contains(untilComplete, m.name) })
	if o.get("anyOf") == nil {
		o.rename("oneOf", "anyOf") // several branches can still match
	}
	o.drop("oneOf")
	o.eachSchema(func(value json.RawMessage, _ string, _ ...string) json.RawMessage { return growing(value) })
	return o.render()
}
