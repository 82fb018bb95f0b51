package provider

import "waybill.dev/waybill/protocol/projection"

// Strict is a provider whose strict mode takes a subset of JSON Schema: what it is
// sent is the projection of a schema to its dialect (OpenWOP envelope contract §20).
// Any other provider is sent schemas as they are.
type Strict interface {
	Dialect() projection.Vendor
	// RequiresDialect reports whether the server refuses what is not of its dialect. One that
	// does not is sent a schema as it is where the dialect cannot say it.
	RequiresDialect() bool
}
