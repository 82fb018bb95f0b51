package provider

import "waybill.dev/waybill/protocol/projection"

// Strict is a provider whose strict mode takes a subset of JSON Schema: what it is
// sent is the projection of a schema to its dialect (OpenWOP envelope contract §20).
// Any other provider is sent schemas as they are.
type Strict interface {
	Dialect() projection.Vendor
}
