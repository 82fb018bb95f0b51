// Package models reads the model settings of a host: providers, keys, settings and limits.
package models

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/subject"
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
	// ValuesOnly: neither files nor variables are read, so they have no errors, and the host may have
	// providers that the flags do not name.
	ValuesOnly bool
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

// AnyTenant in --hide-fallback means all tenants.
const AnyTenant = "*"

// Validate returns all errors, each with the flag, the value and the remedy. It sets the default
// model. more are ids of providers that have no flag.
func (o *Options) Validate(more ...string) (errs []error) {
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
	errs = append(errs, o.checkTenants()...)
	if _, err := LoadCatalogue(o.CatalogueFile); err != nil && !o.ValuesOnly {
		errs = append(errs, err)
	}
	if st, err := os.Stat(o.CredentialsDir); o.CredentialsDir != "" && !o.ValuesOnly && (err != nil || !st.IsDir()) {
		errs = append(errs, fmt.Errorf("--credentials %q: give an existing directory, with a key in each TENANT/PROVIDER/REF", o.CredentialsDir))
	}
	if _, err := o.Settings(); err != nil { // without them, servers are unknown
		return append(errs, err)
	}
	all, err := o.configured()
	if err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.checkServers(all)...)
	if o.DefaultModel == "" {
		o.DefaultModel = defaultModel(all)
	}
	if err := o.checkDefaultModel(all, more); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// checkServers returns what the adapters find wrong with their servers.
func (o *Options) checkServers(all []configured) (errs []error) {
	for _, g := range all {
		if err := g.validate(); err != nil {
			errs = append(errs, o.placed(g, err))
		}
	}
	return errs
}

// defaultModel is that of the first vendor with a key, or else the sample.
func defaultModel(all []configured) string {
	for _, v := range vendors {
		if slices.ContainsFunc(all, func(g configured) bool { return g.id == v.id && g.key != "" }) {
			return v.id + "/" + v.model
		}
	}
	return sample.ID + "/" + sample.Model
}

// checkDefaultModel rejects a default model whose provider the host does not have.
func (o *Options) checkDefaultModel(all []configured, more []string) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("--default-model %q: %s", o.DefaultModel, fmt.Sprintf(format, args...))
	}
	id, name, ok := strings.Cut(o.DefaultModel, "/")
	if !ok || id == "" || name == "" {
		return fail("want PROVIDER/MODEL, such as sample/sample-1")
	}
	known := append([]string{sample.ID}, more...)
	for _, g := range all {
		known = append(known, g.id)
	}
	if v := vendorOf(id); v != nil && !slices.Contains(known, id) {
		if o.ValuesOnly {
			return nil // a variable may have its key
		}
		return fail("there is no key for %s; set %s", id, v.keyEnv)
	}
	for _, v := range VendorIDs() {
		if !slices.Contains(known, v) {
			known = append(known, v)
		}
	}
	on := settings.Names{Known: known, Open: o.ValuesOnly && o.SettingsFile != ""}
	if message := on.Check("", id, "provider", "--provider "+id+"=URL adds one"); message != "" {
		return fail("%s", message)
	}
	if id == sample.ID && !slices.Contains(sample.Models(), name) {
		return fail("the provider sample has no such model; it has %s", strings.Join(sample.Models(), ", "))
	}
	return nil
}

// checkTenants rejects names that no tenant can have.
func (o *Options) checkTenants() (errs []error) {
	for _, name := range o.FallbackHidden {
		if name != AnyTenant && !subject.Token(name) {
			errs = append(errs, fmt.Errorf("--hide-fallback %q: want the name of a tenant, or * for all", name))
		}
	}
	return errs
}

// HidesFallback reports whether a tenant's runs do not record substituted models.
func (o *Options) HidesFallback(tenant string) bool {
	return slices.Contains(o.FallbackHidden, AnyTenant) || slices.Contains(o.FallbackHidden, tenant)
}
