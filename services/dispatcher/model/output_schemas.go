package model

import (
	"crypto/sha256"
	"encoding/json"

	"waybill.dev/waybill/protocol/schema"
)

// outputSchemas caches compiled output schemas.
type outputSchemas struct {
	cache[[sha256.Size]byte, outputSchema]
}

// outputSchema is a compiled output schema and its name in events.
type outputSchema struct {
	schema *schema.Schema
	name   string
}

func (c *outputSchemas) compile(source json.RawMessage) (outputSchema, error) {
	return c.getOrCompile(sha256.Sum256(source), func() (outputSchema, int, error) {
		s, err := schema.Compile("outputSchema", source)
		if err != nil {
			return outputSchema{}, 0, err
		}
		return outputSchema{schema: s, name: outputSchemaName(source)}, len(source), nil
	})
}
