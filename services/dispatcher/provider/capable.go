package provider

import "waybill.dev/waybill/protocol/modelgate"

// Capable is a provider that knows what its models can do. One that is not vouches
// for nothing: nodes with requirements are refused on its models (OpenWOP envelope
// contract §16.3).
type Capable interface {
	// Can reports whether a model has a capability.
	Can(model string, capability modelgate.Capability) bool
}

// Finder finds providers; *Registry is one.
type Finder interface {
	Lookup(id string) (Provider, bool)
}

// Can reports whether a model of a provider has a capability.
func Can(providers Finder, m modelgate.Model, capability modelgate.Capability) bool {
	p, ok := providers.Lookup(m.Provider)
	if !ok {
		return false
	}
	c, ok := p.(Capable)
	return ok && c.Can(m.Model, capability)
}
