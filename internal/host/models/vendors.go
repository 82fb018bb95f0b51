package models

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/host/tools"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
)

// vendor is a provider with its own API and name.
type vendor struct {
	id string
	// keyEnv is the key's variable in the vendor's own tools.
	keyEnv string
	// model is the default model.
	model string
	open  func(configured) (provider.Provider, error)
}

var vendors = []vendor{
	{"openai", "OPENAI_API_KEY", "gpt-6.1-terra", func(g configured) (provider.Provider, error) {
		return compat.New(compat.Config{
			Dialect: compat.DialectOpenAI,
			ID:      g.id,
			BaseURL: g.url,
			APIKey:  g.key,
			KeyName: g.keyName,
		})
	}},
	{anthropic.DefaultID, "ANTHROPIC_API_KEY", "claude-sonnet-5-5", func(g configured) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName})
	}},
	{gemini.DefaultID, "GEMINI_API_KEY", "gemini-3.8-flash", func(g configured) (provider.Provider, error) {
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

// configured is a provider of the flags or the environment.
type configured struct {
	id, url string
	vendor  *vendor // nil means an OpenAI-compatible server
	key     provider.Secret
	// keyName is the variable of the key, also if it is not set.
	keyName string
}

func (g configured) open() (provider.Provider, error) {
	if g.vendor != nil {
		return g.vendor.open(g)
	}
	return compat.New(compat.Config{ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName})
}

// configured lists the providers of the flags, and the vendors with a key.
func (o *Options) configured() ([]configured, error) {
	var (
		out  []configured
		errs []error
	)
	add := func(id, url string) {
		g := configured{id: id, url: url, vendor: vendorOf(id)}
		var err error
		if g.key, g.keyName, err = keyOf(id, g.vendor); err != nil {
			errs = append(errs, err)
		}
		out = append(out, g)
	}
	for _, f := range o.ProviderFlags {
		id, url, isServer := strings.Cut(f, "=")
		add(id, url)
		switch g := out[len(out)-1]; {
		case !isServer && g.vendor == nil:
			errs = append(errs, fmt.Errorf("--provider %q: want ID=URL, or one of openai, anthropic and gemini", f))
		case g.vendor != nil && url == "" && g.key == "" && o.CredentialsDir == "" && !o.SecretsOnly:
			errs = append(errs, fmt.Errorf("--provider %s: there is no key; set %s, %s or %s, or let tenants bring theirs with --credentials", id, g.vendor.keyEnv, g.keyName, g.keyName+"_FILE"))
		}
	}
	for _, v := range vendors {
		if slices.ContainsFunc(out, func(g configured) bool { return g.id == v.id }) {
			continue
		}
		add(v.id, "")
		if out[len(out)-1].key == "" {
			out = out[:len(out)-1]
		}
	}
	return out, errors.Join(errs...)
}

// keyOf reads a provider's key: from a variable, from a file such as a mounted secret, or from the
// variable of the vendor's own tools.
func keyOf(id string, v *vendor) (key provider.Secret, name string, err error) {
	name = "WAYBILL_PROVIDER_" + tools.EnvID(id) + "_KEY"
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

// CheckKeys returns the errors in the keys of the providers.
func (o *Options) CheckKeys() error {
	_, err := o.configured()
	return err
}
