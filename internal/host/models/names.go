package models

import (
	"slices"

	"waybill.dev/waybill/services/dispatcher/provider/sample"
	"waybill.dev/waybill/services/redactor/redact"
)

// IDs are the providers of the host, without those of the test seams.
func (o *Options) IDs() []string {
	out := []string{sample.ID}
	all, _ := o.configured() // checked before
	for _, g := range all {
		out = append(out, g.id)
	}
	return out
}

// SelfHosted are the providers on servers of the operator.
func (o *Options) SelfHosted() (out []string) {
	all, _ := o.configured() // checked before
	for _, g := range all {
		if g.vendor == nil {
			out = append(out, g.id)
		}
	}
	return out
}

// Keyed are the providers that need a key: all but the sample.
func (o *Options) Keyed() []string {
	return slices.DeleteFunc(o.IDs(), func(id string) bool { return id == sample.ID })
}

// TenantKeyed are the vendors that can be called with a tenant's key only.
func (o *Options) TenantKeyed() (out []string) {
	all, _ := o.configured() // checked before
	for _, g := range all {
		if g.vendor != nil && g.url == "" && g.key == "" {
			out = append(out, g.id)
		}
	}
	return out
}

// Secrets are the host's keys of providers, which are always redacted.
func (o *Options) Secrets() (out []redact.Secret) {
	all, _ := o.configured() // checked before
	for _, g := range all {
		if len(g.key) >= redact.MinLength { // shorter ones are not matched
			out = append(out, redact.Secret{ID: "provider-" + g.id, Value: redact.Value(string(g.key))})
		}
	}
	return out
}
