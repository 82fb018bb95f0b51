// Package accepttest has an envelope of typical size for the benchmarks of the pipeline.
// The benchmarks of the package and of the built binary measure the same document.
package accepttest

import (
	"fmt"
	"strings"
	"sync"
)

// Kind is the kind of the envelope, and Version the version of its schema.
const (
	Kind    = "vendor.bench.order"
	Version = 1
)

// Schema is the kind's schema: typical for a nested form, within the subset that providers
// can enforce.
const Schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "x-schemaVersion": 1,
  "type": "object", "additionalProperties": false,
  "required": ["reasoning", "customer", "status", "items", "summary"],
  "properties": {
    "reasoning": {"type": "string", "maxLength": 4000},
    "customer": {
      "type": "object", "additionalProperties": false, "required": ["name", "email", "tier"],
      "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "email": {"type": "string", "format": "email"},
        "tier": {"type": "string", "enum": ["free", "plus", "business"]}
      }
    },
    "status": {"type": "string", "enum": ["new", "paid", "shipped", "returned"]},
    "items": {"type": "array", "maxItems": 50, "items": {"$ref": "#/$defs/item"}},
    "summary": {"type": "string", "maxLength": 4000}
  },
  "$defs": {
    "item": {
      "type": "object", "additionalProperties": false, "required": ["sku", "quantity", "price", "tags"],
      "properties": {
        "sku": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
        "quantity": {"type": "integer", "minimum": 1},
        "price": {"type": "number", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}}
      }
    }
  }
}`

// Payload satisfies Schema. It is made once, since benchmarks call it often.
func Payload() string { return payload() }

var payload = sync.OnceValue(func() string {
	const sentence = "The lamp arrived broken; the customer wrote twice and wants the money back. "
	items := make([]string, 10)
	for i := range items {
		items[i] = fmt.Sprintf(`{"sku":"LA-%04d","quantity":%d,"price":%d.90,"tags":["lamp","fragile"]}`, 1000+i, i+1, 10+i)
	}
	return fmt.Sprintf(`{"reasoning":%q,"customer":{"name":"Ada Example","email":"ada@example.org","tier":"plus"},"status":"paid","items":[%s],"summary":%q}`,
		strings.Repeat(sentence, 3), strings.Join(items, ","), strings.Repeat(sentence, 10)+"Please hurry, it is a gift.")
})

// Envelope returns an AIEnvelope of 2 KB with a correlationId.
func Envelope(correlationID string) []byte {
	return fmt.Appendf(nil, `{"type":%q,"schemaVersion":%d,"envelopeId":"env-%s","correlationId":%q,"payload":%s,`+
		`"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`, Kind, Version, correlationID, correlationID, Payload())
}
