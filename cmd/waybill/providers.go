package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/services/dispatcher/credential"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
	"waybill.dev/waybill/services/redactor/redact"
)

// modelOptions are the flags that say which models are asked, and with whose keys.
type modelOptions struct {
	providers      []string
	defaultModel   string
	credentialsDir string
	policies       string
	settings       string
	models         string
	unknownModels  string
	hideFallback   []string
	directive      string
	refusalText    string
	// secretsOnly says that no model is asked: where there is no key, there is none to keep.
	secretsOnly bool
}

func (o *modelOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.providers, "provider", nil,
		"openai, anthropic or gemini, which is there by itself when its key is; or ID=URL of an OpenAI-compatible server (repeatable); the key is read from WAYBILL_PROVIDER_ID_KEY, or from the file that WAYBILL_PROVIDER_ID_KEY_FILE names")
	f.StringVar(&o.defaultModel, "default-model", "", "PROVIDER/MODEL for nodes that name none; empty: one of the first vendor whose key is there, else sample/sample-1")
	f.StringVar(&o.credentialsDir, "credentials", "", "directory of tenants' own keys, one a file: TENANT/PROVIDER/REF; a run names its key by configurable.ai.credentialRef")
	f.StringVar(&o.policies, "provider-policies", "", "JSON file of who may ask which models of which providers, and with whose keys; empty: everybody may ask all")
	f.StringVar(&o.settings, "provider-settings", "", "JSON file with time limits, concurrent calls and requests and tokens per minute of each provider; empty uses the defaults")
	f.StringVar(&o.models, "models", "", "JSON file of models, rules and prices that is laid over the built-in model catalogue")
	f.StringVar(&o.unknownModels, "unknown-models", refuseUnknown, "refuse or trust: whether a node's requirements are met by a model of which the catalogue does not say so")
	f.StringVar(&o.directive, "reasoning-directive", string(model.Advisory), "mandatory, advisory or off: how strongly models are asked to write their reasoning into an answer that has a place for it")
	f.StringArrayVar(&o.hideFallback, "hide-fallback", nil, "tenant whose runs do not tell which model was asked instead of another (repeatable; * is everybody)")
	f.StringVar(&o.refusalText, "refusal-text", redactRefusals, "redacted or none: whether a run records the words in which a model refuses, without secrets and without words of the prompt")
}

// What --refusal-text makes of the words in which a model refuses.
const (
	redactRefusals = "redacted"
	noRefusals     = "none"
)

// What --unknown-models makes of what is not known of a model.
const (
	refuseUnknown = "refuse"
	trustUnknown  = "trust"
)

// validate returns all that is wrong, each with the flag, the value and the remedy.
// It settles the default model.
func (o *modelOptions) validate() (errs []error) {
	if _, err := loadCatalogue(o.models); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.readPolicies(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.readSettings(); err != nil {
		errs = append(errs, err)
	}
	if o.unknownModels != refuseUnknown && o.unknownModels != trustUnknown {
		errs = append(errs, fmt.Errorf("--unknown-models %q: want %s or %s", o.unknownModels, refuseUnknown, trustUnknown))
	}
	if !model.Directive(o.directive).Valid() {
		errs = append(errs, fmt.Errorf("--reasoning-directive %q: want mandatory, advisory or off", o.directive))
	}
	if o.refusalText != redactRefusals && o.refusalText != noRefusals {
		errs = append(errs, fmt.Errorf("--refusal-text %q: want %s or %s", o.refusalText, redactRefusals, noRefusals))
	}
	all, err := o.given()
	if err != nil {
		return append(errs, err)
	}
	if o.defaultModel == "" {
		o.defaultModel = sample.ID + "/" + sample.Model
		for _, v := range vendors {
			if slices.ContainsFunc(all, func(g given) bool { return g.id == v.id && g.key != "" }) {
				o.defaultModel = v.id + "/" + v.model
				break
			}
		}
	}
	p, m, ok := strings.Cut(o.defaultModel, "/")
	if !ok || p == "" || m == "" {
		errs = append(errs, fmt.Errorf("--default-model %q: want PROVIDER/MODEL, such as sample/sample-1", o.defaultModel))
	} else if v := vendorOf(p); v != nil && !slices.ContainsFunc(all, func(g given) bool { return g.id == p }) {
		errs = append(errs, fmt.Errorf("--default-model %q: there is no key for %s; set %s", o.defaultModel, p, v.keyEnv))
	}
	return errs
}

// hidesFallback reports whether a tenant's runs do not tell what was substituted.
func (o *modelOptions) hidesFallback(tenant string) bool {
	return slices.Contains(o.hideFallback, "*") || slices.Contains(o.hideFallback, tenant)
}

// vendor is a provider with an API and a name of its own.
type vendor struct {
	id string
	// keyEnv is the variable that the vendor's own tools read the key from.
	keyEnv string
	// model is asked where nobody chose one.
	model string
	open  func(given) (provider.Provider, error)
}

var vendors = []vendor{
	{"openai", "OPENAI_API_KEY", "gpt-6.1-terra", func(g given) (provider.Provider, error) {
		return compat.New(compat.Config{Dialect: compat.DialectOpenAI, ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName})
	}},
	{anthropic.DefaultID, "ANTHROPIC_API_KEY", "claude-sonnet-5-5", func(g given) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName})
	}},
	{gemini.DefaultID, "GEMINI_API_KEY", "gemini-3.8-flash", func(g given) (provider.Provider, error) {
		return gemini.New(gemini.Config{ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName})
	}},
}

func vendorOf(id string) *vendor {
	for i := range vendors {
		if vendors[i].id == id {
			return &vendors[i]
		}
	}
	return nil
}

// given is a provider as the operator gives it.
type given struct {
	id, url string
	vendor  *vendor // nil: an OpenAI-compatible server
	key     provider.Secret
	// keyName says where the key is set, or would be.
	keyName string
}

func (g given) open() (provider.Provider, error) {
	if g.vendor != nil {
		return g.vendor.open(g)
	}
	return compat.New(compat.Config{ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName})
}

// given lists the providers of the flags, and the vendors whose keys are there.
func (o *modelOptions) given() ([]given, error) {
	var (
		out  []given
		errs []error
	)
	add := func(id, url string) {
		g := given{id: id, url: url, vendor: vendorOf(id)}
		var err error
		if g.key, g.keyName, err = keyOf(id, g.vendor); err != nil {
			errs = append(errs, err)
		}
		out = append(out, g)
	}
	for _, f := range o.providers {
		id, url, isServer := strings.Cut(f, "=")
		add(id, url)
		switch g := out[len(out)-1]; {
		case !isServer && g.vendor == nil:
			errs = append(errs, fmt.Errorf("--provider %q: want ID=URL, or one of openai, anthropic and gemini", f))
		case g.vendor != nil && url == "" && g.key == "" && o.credentialsDir == "" && !o.secretsOnly:
			errs = append(errs, fmt.Errorf("--provider %s: there is no key; set %s, %s or %s, or let tenants bring theirs with --credentials", id, g.vendor.keyEnv, g.keyName, g.keyName+"_FILE"))
		}
	}
	for _, v := range vendors {
		if slices.ContainsFunc(out, func(g given) bool { return g.id == v.id }) {
			continue
		}
		add(v.id, "")
		if out[len(out)-1].key == "" {
			out = out[:len(out)-1]
		}
	}
	return out, errors.Join(errs...)
}

// keyOf reads a provider's key: from a variable, from a file such as a mounted secret,
// or, of a vendor, from the variable that its own tools read.
func keyOf(id string, v *vendor) (key provider.Secret, name string, err error) {
	name = "WAYBILL_PROVIDER_" + envID(id) + "_KEY"
	fromEnv, file := os.Getenv(name), os.Getenv(name+"_FILE")
	switch {
	case fromEnv != "" && file != "":
		return "", name, fmt.Errorf("%s and %s_FILE are both set; keep one of the two", name, name)
	case fromEnv != "":
		return provider.Secret(fromEnv), name, nil
	case file != "":
		b, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the file
		if err != nil || strings.TrimSpace(string(b)) == "" {
			return "", name + "_FILE", fmt.Errorf("%s_FILE: want the path of a file with the key in it", name)
		}
		return provider.Secret(strings.TrimSpace(string(b))), name + "_FILE", nil
	case v != nil && os.Getenv(v.keyEnv) != "":
		return provider.Secret(os.Getenv(v.keyEnv)), v.keyEnv, nil
	}
	return "", name, nil
}

// ids are the providers that the host will have, but for those of the test seams.
func (o *modelOptions) ids() []string {
	out := []string{sample.ID}
	all, _ := o.given() // checked before
	for _, g := range all {
		out = append(out, g.id)
	}
	return out
}

// selfHosted are the providers on servers that the operator names and keeps.
func (o *modelOptions) selfHosted() (out []string) {
	all, _ := o.given() // checked before
	for _, g := range all {
		if g.vendor == nil {
			out = append(out, g.id)
		}
	}
	return out
}

// keyed are the providers that are asked with a key: any but the stand-in.
func (o *modelOptions) keyed() []string {
	return slices.DeleteFunc(o.ids(), func(id string) bool { return id == sample.ID })
}

// tenantKeyed are the vendors that can be asked with a tenant's key alone.
func (o *modelOptions) tenantKeyed() (out []string) {
	all, _ := o.given() // checked before
	for _, g := range all {
		if g.vendor != nil && g.url == "" && g.key == "" {
			out = append(out, g.id)
		}
	}
	return out
}

// secrets are the keys of the host's own: none of them may ever show.
func (o *modelOptions) secrets() (out []redact.Secret) {
	all, _ := o.given() // checked before
	for _, g := range all {
		if len(g.key) >= redact.MinLength { // shorter ones are not matched
			out = append(out, redact.Secret{ID: "provider-" + g.id, Value: redact.Value(string(g.key))})
		}
	}
	return out
}

// open makes the providers: sample always, the operator's, and the scripted one while
// test seams are served: scripts is nil without them. Their connections are closed
// later.
func (o *modelOptions) open(scripts mock.Scripts, later func(func())) (*provider.Registry, error) {
	list := []provider.Provider{sample.New(0)}
	all, err := o.given()
	errs := []error{err}
	for _, g := range all {
		p, err := g.open()
		if err != nil {
			errs = append(errs, fmt.Errorf("--provider: %w", err))
			continue
		}
		if c, ok := p.(interface{ Close() }); ok {
			later(c.Close)
		}
		list = append(list, p)
	}
	if scripts != nil {
		list = append(list, mock.New(scripts))
	}
	reg, err := provider.NewRegistry(list...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return reg, nil
}

// maxPolicies limits the files of --provider-policies and --provider-settings, in bytes.
const maxPolicies = 1 << 20

// readPolicies reads the rules against providers; nil: there are none.
func (o *modelOptions) readPolicies() (*model.Policies, error) {
	if o.policies == "" {
		return nil, nil
	}
	doc, err := readSettingsFile(o.policies)
	if err != nil {
		return nil, fmt.Errorf("--provider-policies %s: %w", o.policies, unwrapped(err))
	}
	p, err := model.ParsePolicies(doc)
	if err != nil {
		return nil, fmt.Errorf("--provider-policies %s:\n%w", o.policies, err)
	}
	return p, nil
}

// credentials opens the directory of tenants' keys; nil: there is none.
func (o *modelOptions) credentials() (*credential.Store, error) {
	if o.credentialsDir == "" {
		return nil, nil
	}
	s, err := credential.Open(o.credentialsDir)
	if err != nil {
		return nil, fmt.Errorf("%w: --credentials %s: %w", errUsage, o.credentialsDir, err)
	}
	return s, nil
}
