// Package models reads the model settings of a host: providers, keys, settings and limits.
package models

import (
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// Options select the models that are called, and the keys.
type Options struct {
	// ProviderFlags are names of vendors and ID=URL of servers. Vendors with a key in the environment
	// need none.
	ProviderFlags []string
	// DefaultModel is PROVIDER/MODEL; empty until Validate sets it.
	DefaultModel string
	// CredentialsDir has the tenants' own keys; empty disables them.
	CredentialsDir string
	// PoliciesFile, SettingsFile and CatalogueFile are JSON files; empty uses the defaults.
	PoliciesFile, SettingsFile, CatalogueFile string
	UnknownModels, Directive, RefusalText     string
	// Substitution lets nodes use the fallback model of their type.
	Substitution bool
	// FallbackHidden are tenants whose runs do not record substituted models.
	FallbackHidden []string
	// SecretsOnly: this process calls no model, so a provider without a key is not an error.
	SecretsOnly bool
}

// DefaultOptions are the settings without flags.
func DefaultOptions() Options {
	return Options{Substitution: true, UnknownModels: RefuseUnknown, Directive: string(model.Advisory), RefusalText: RedactRefusals}
}

// Values of --refusal-text: what is recorded of the text of a model's refusal.
const (
	RedactRefusals = "redacted"
	NoRefusals     = "none"
)

// Values of --unknown-models: whether a model has a capability that its catalogue entry does not list.
const (
	RefuseUnknown = "refuse"
	TrustUnknown  = "trust"
)

// Validate returns all errors, each with the flag, the value and the remedy. It sets the default
// model.
func (o *Options) Validate() (errs []error) {
	if _, err := LoadCatalogue(o.CatalogueFile); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.Policies(); err != nil {
		errs = append(errs, err)
	}
	if o.UnknownModels != RefuseUnknown && o.UnknownModels != TrustUnknown {
		errs = append(errs, fmt.Errorf("--unknown-models %q: want %s or %s", o.UnknownModels, RefuseUnknown, TrustUnknown))
	}
	if !model.Directive(o.Directive).Valid() {
		errs = append(errs, fmt.Errorf("--reasoning-directive %q: want mandatory, advisory or off", o.Directive))
	}
	if o.RefusalText != RedactRefusals && o.RefusalText != NoRefusals {
		errs = append(errs, fmt.Errorf("--refusal-text %q: want %s or %s", o.RefusalText, RedactRefusals, NoRefusals))
	}
	if _, err := o.Settings(); err != nil { // without them, servers are unknown
		return append(errs, err)
	}
	all, err := o.configured()
	if err != nil {
		return append(errs, err)
	}
	if o.DefaultModel == "" {
		o.DefaultModel = sample.ID + "/" + sample.Model
		for _, v := range vendors {
			if slices.ContainsFunc(all, func(g configured) bool { return g.id == v.id && g.key != "" }) {
				o.DefaultModel = v.id + "/" + v.model
				break
			}
		}
	}
	p, m, ok := strings.Cut(o.DefaultModel, "/")
	if !ok || p == "" || m == "" {
		errs = append(errs, fmt.Errorf("--default-model %q: want PROVIDER/MODEL, such as sample/sample-1", o.DefaultModel))
	} else if v := vendorOf(p); v != nil && !slices.ContainsFunc(all, func(g configured) bool { return g.id == p }) {
		errs = append(errs, fmt.Errorf("--default-model %q: there is no key for %s; set %s", o.DefaultModel, p, v.keyEnv))
	}
	return errs
}

// HidesFallback reports whether a tenant's runs do not record substituted models.
func (o *Options) HidesFallback(tenant string) bool {
	return slices.Contains(o.FallbackHidden, "*") || slices.Contains(o.FallbackHidden, tenant)
}
