// Package models reads which models a host may ask: their providers, keys, settings and
// limits.
package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// Options are the flags that say which models are asked, and with whose keys.
type Options struct {
	ProviderFlags  []string
	DefaultModel   string
	credentialsDir string
	PoliciesFile   string
	SettingsFile   string
	CatalogueFile  string
	UnknownModels  string
	FallbackHidden []string
	Directive      string
	RefusalText    string
	// SecretsOnly says that no model is asked: where there is no key, there is none to keep.
	SecretsOnly bool
}

func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.ProviderFlags, "provider", nil,
		"openai, anthropic or gemini, which is there by itself when its key is; or ID=URL of an OpenAI-compatible server (repeatable); the key is read from WAYBILL_PROVIDER_ID_KEY, or from the file that WAYBILL_PROVIDER_ID_KEY_FILE names")
	f.StringVar(&o.DefaultModel, "default-model", "", "PROVIDER/MODEL for nodes that name none; empty: one of the first vendor whose key is there, else sample/sample-1")
	f.StringVar(&o.credentialsDir, "credentials", "", "directory of tenants' own keys, one a file: TENANT/PROVIDER/REF; a run names its key by configurable.ai.credentialRef")
	f.StringVar(&o.PoliciesFile, "provider-policies", "", "JSON file of who may ask which models of which providers, and with whose keys; empty: everybody may ask all")
	f.StringVar(&o.SettingsFile, "provider-settings", "", "JSON file with time limits, concurrent calls and requests and tokens per minute of each provider; empty uses the defaults")
	f.StringVar(&o.CatalogueFile, "models", "", "JSON file of models, rules and prices that is laid over the built-in model catalogue")
	f.StringVar(&o.UnknownModels, "unknown-models", RefuseUnknown, "refuse or trust: whether a node's requirements are met by a model of which the catalogue does not say so")
	f.StringVar(&o.Directive, "reasoning-directive", string(completion.Advisory), "mandatory, advisory or off: how strongly models are asked to write their reasoning into an answer that has a place for it")
	f.StringArrayVar(&o.FallbackHidden, "hide-fallback", nil, "tenant whose runs do not tell which model was asked instead of another (repeatable; * is everybody)")
	f.StringVar(&o.RefusalText, "refusal-text", RedactRefusals, "redacted or none: whether a run records the words in which a model refuses, without secrets and without words of the prompt")
}

// What --refusal-text makes of the words in which a model refuses.
const (
	RedactRefusals = "redacted"
	NoRefusals     = "none"
)

// What --unknown-models makes of what is not known of a model.
const (
	RefuseUnknown = "refuse"
	TrustUnknown  = "trust"
)

// Validate returns all that is wrong, each with the flag, the value and the remedy.
// It settles the default model.
func (o *Options) Validate() (errs []error) {
	if _, err := LoadCatalogue(o.CatalogueFile); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.Policies(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.Settings(); err != nil {
		errs = append(errs, err)
	}
	if o.UnknownModels != RefuseUnknown && o.UnknownModels != TrustUnknown {
		errs = append(errs, fmt.Errorf("--unknown-models %q: want %s or %s", o.UnknownModels, RefuseUnknown, TrustUnknown))
	}
	if !completion.Directive(o.Directive).Valid() {
		errs = append(errs, fmt.Errorf("--reasoning-directive %q: want mandatory, advisory or off", o.Directive))
	}
	if o.RefusalText != RedactRefusals && o.RefusalText != NoRefusals {
		errs = append(errs, fmt.Errorf("--refusal-text %q: want %s or %s", o.RefusalText, RedactRefusals, NoRefusals))
	}
	all, err := o.Providers()
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

// HidesFallback reports whether a tenant's runs do not tell what was substituted.
func (o *Options) HidesFallback(tenant string) bool {
	return slices.Contains(o.FallbackHidden, "*") || slices.Contains(o.FallbackHidden, tenant)
}
