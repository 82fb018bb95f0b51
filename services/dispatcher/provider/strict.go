package provider

import "waybill.dev/waybill/internal/projection"

// Strict is a provider whose strict mode supports a subset of JSON Schema. It gets the projection
// of a schema to its dialect (OpenWOP envelope contract §20). Other providers get schemas
// unchanged.
type Strict interface {
	Dialect() projection.Vendor
	// RequiresDialect reports whether the server rejects schemas outside its dialect. Otherwise a
	// schema that the dialect cannot express is sent unchanged.
	RequiresDialect() bool
}
