package a2ui

import (
	_ "embed" // of the schema
	"encoding/json"
	"sync"

	"waybill.dev/waybill/protocol/schema"
)

// Kind is the envelope kind with a surface as its payload.
const Kind = "ui.a2ui-surface"

//go:embed surface.schema.json
var surfaceSchema []byte

// Schema returns the JSON Schema of a surface's payload, including the closed catalogue.
func Schema() json.RawMessage { return surfaceSchema }

// compiled is the compiled Schema; a test covers the embedded document.
var compiled = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile(Kind, surfaceSchema)
	if err != nil {
		panic("a2ui: " + err.Error())
	}
	return s
})

// Read reads an unvalidated payload. Problems list everything that prevents it from being
// displayed; paths point into the payload.
func Read(payload []byte) (*Surface, []Problem) {
	var wrong []Problem
	for _, v := range compiled().Validate(payload) {
		wrong = append(wrong, Problem{Path: v.InstancePath, Message: v.Message})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	s, err := Parse(payload)
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	return s, s.Ambiguous()
}
