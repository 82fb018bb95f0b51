package a2ui

import (
	_ "embed" // of the schema
	"encoding/json"
	"sync"

	"waybill.dev/waybill/protocol/schema"
)

// Kind is the kind of envelope that a surface is the payload of.
const Kind = "ui.a2ui-surface"

//go:embed surface.schema.json
var surfaceSchema []byte

// Schema is the JSON Schema of a surface's payload, closed catalogue and all.
func Schema() json.RawMessage { return surfaceSchema }

// compiled is part of the binary, and a test reads it.
var compiled = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile(Kind, surfaceSchema)
	if err != nil {
		panic("a2ui: " + err.Error())
	}
	return s
})

// Read reads a payload that nobody has judged. Problems are all that keep it from being
// shown; paths point into the payload.
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
