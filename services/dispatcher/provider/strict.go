package provider

import "waybill.dev/waybill/internal/projection"

// Strict is a provider with a structured-output mode. It gets the projection of a schema to the
// dialect of the model (OpenWOP envelope contract §20), or the schema itself if the dialect is
// projection.AsWritten. Other providers get schemas unchanged.
type Strict interface {
	Dialect(model string) projection.Vendor
}
