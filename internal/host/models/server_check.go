package models

import (
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// missingAddress is the problem of a server without an address.
const missingAddress = "missing: the address of the server"

// ParseSettings reads a document of --provider-settings. A nil known knows all ids of providers. The
// values of environment variables and files that the document names are not read.
func ParseSettings(doc []byte, known *settings.Names) (*limit.All, error) {
	return limit.Parse(doc, limit.Host{Providers: known, Server: func(id string, s limit.Server) []limit.Finding {
		found := checkServer(id, s)
		if g := (configured{id: id, vendor: vendorOf(id), settings: s}); g.lacksAddress() && known != nil && known.Open && known.Doubt != nil {
			known.Doubt(strictjson.Problem{
				Path:    settings.Path("/providers", id) + "/baseUrl",
				Message: missingAddress + ", unless the host has --provider " + id + "=URL",
			})
		}
		return found
	}, Model: func(path, provider, model string) string { return checkOther(known, path, provider, model) }})
}

// checkOther returns why a model that is called instead of another does not exist. Providers other than
// the host's own may have models that the catalogue does not list.
func checkOther(known *settings.Names, path, provider, model string) string {
	all := catalogue.Builtin()
	if _, found := all.Lookup(provider, model); found || !all.Lists(provider) {
		return ""
	}
	meant := ""
	if near := all.Near(provider, model, 1); len(near) > 0 {
		meant = "; did you mean " + near[0] + "?"
	}
	if provider == sample.ID {
		return "the sample provider has no such model" + meant
	}
	if known != nil && known.Doubt != nil {
		known.Doubt(strictjson.Problem{Path: path, Message: "the built-in catalogue has no such model; the host needs it in --models" + meant})
	}
	return ""
}

// lacksAddress reports whether a provider has no address, and its interface no usual one.
func (g configured) lacksAddress() bool {
	api := g.settings.APIOf(g.id)
	return g.url == "" && g.settings.BaseURL == "" && g.vendor == nil && (api == limit.OpenAIChat || api == limit.AzureOpenAI)
}

// checkServer returns what the adapter of a server finds wrong with it.
func checkServer(id string, s limit.Server) []limit.Finding {
	if id == sample.ID {
		return []limit.Finding{{Message: "is the host's own provider, which has no server; give the server another id"}}
	}
	return findingsOf(configured{id: id, url: s.BaseURL, vendor: vendorOf(id), settings: s}.validate())
}

// validate returns what the adapter of a provider finds wrong with its configuration.
func (g configured) validate() error {
	if g.lacksAddress() {
		return nil // its flag may have it
	}
	switch g.settings.APIOf(g.id) {
	case limit.Anthropic:
		return anthropic.Config(g.server()).Validate()
	case limit.Gemini:
		return gemini.Config(g.server()).Validate()
	case limit.Bedrock:
		return g.bedrock(g.server()).Validate()
	case limit.Vertex:
		return g.vertex(g.server()).Validate()
	default:
		return g.compatible().Validate()
	}
}

// findingsOf converts the problems of an adapter.
func findingsOf(err error) (out []limit.Finding) {
	bad, ok := errors.AsType[*outbound.InvalidError](err)
	if !ok {
		return nil
	}
	for _, f := range bad.Findings {
		path := "/" + strings.ReplaceAll(strings.Replace(f.Field, "_effort", "Effort", 1), ".", "/")
		if f.Field == "id" {
			path = "" // limit.Parse checks it, too
		}
		out = append(out, limit.Finding{Path: path, Message: f.Problem()})
	}
	return out
}

// placed returns the error of a provider that cannot be opened, with the file and the member if the
// settings describe the provider.
func (o *Options) placed(g configured, err error) error {
	found := findingsOf(err)
	doc, _, _ := o.parseSettings(nil) // read before
	if len(found) == 0 || !g.settings.Describes() || doc == nil {
		return fmt.Errorf("--provider: %w", err)
	}
	var wrong strictjson.Problems
	for _, p := range found {
		wrong = append(wrong, strictjson.Problem{Path: settings.Path("/providers", g.id) + p.Path, Message: p.Message})
	}
	return fmt.Errorf("--provider-settings %s:\n%w", o.SettingsFile, wrong.In(doc))
}

// VendorIDs are the ids of the vendors.
func VendorIDs() (out []string) {
	for _, v := range vendors {
		out = append(out, v.id)
	}
	return out
}

// meant suggests a known id that is close to an unknown one.
func meant(id string, known []string) string {
	if near := suggest.Names(id, known, 1); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}
