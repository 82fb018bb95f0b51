package model

import (
	"crypto/sha256"
	"encoding/json"

	"waybill.dev/waybill/protocol/schema"
)

// values remembers compiled output schemas.
type values struct {
	cache[[sha256.Size]byte, value]
}

// value is an output schema, and what events call it.
type value struct {
	schema *schema.Schema
	name   string
}

func (m *values) of(source json.RawMessage) (value, error) {
	return m.cache.of(sha256.Sum256(source), func() (value, int, error) {
		s, err := schema.Compile("outputSchema", source)
		if err != nil {
			return value{}, 0, err
		}
		return value{schema: s, name: valueName(source)}, len(source), nil
	})
}
