package models

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
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
		if g.vendor == nil && (g.url != "" || !g.settings.Describes()) { // else the address is a vendor's
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
	add := func(id string, value provider.Secret) {
		if len(value) >= redact.MinLength { // shorter ones are not matched
			out = append(out, redact.Secret{ID: id, Value: redact.Value(string(value))})
		}
	}
	if slices.ContainsFunc(all, func(g configured) bool { return g.settings.API == limit.Bedrock }) {
		for _, name := range awsSecrets {
			add(strings.ToLower(strings.ReplaceAll(name, "_", "-")), provider.Secret(os.Getenv(name)))
		}
	}
	for _, g := range all {
		add("provider-"+g.id, g.key)
		add("provider-"+g.id+"-secret-access-key", g.aws.secret)
		add("provider-"+g.id+"-session-token", g.aws.token)
		for _, name := range slices.Sorted(maps.Keys(secretMembers(g.key))) {
			add("provider-"+g.id+"-"+name, secretMembers(g.key)[name])
		}
		for _, name := range slices.Sorted(maps.Keys(g.settings.SecretHeaders)) {
			add("provider-"+g.id+"-"+strings.ToLower(name), g.extras.Headers[name])
		}
	}
	return out
}

// awsSecrets are the variables of AWS's default chain that hold secrets.
var awsSecrets = []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}

// secretMembers returns the secrets in a document of Google's credentials.
func secretMembers(key provider.Secret) map[string]provider.Secret {
	var doc struct {
		PrivateKey   string `json:"private_key"`
		ClientSecret string `json:"client_secret"`
		RefreshToken string `json:"refresh_token"`
	}
	_ = json.Unmarshal([]byte(key), &doc) // any other key is no document
	return map[string]provider.Secret{
		"private-key":   provider.Secret(doc.PrivateKey),
		"client-secret": provider.Secret(doc.ClientSecret),
		"refresh-token": provider.Secret(doc.RefreshToken),
	}
}

// DefaultModelOf returns the model of a provider for callers that name none; empty for a server of
// the operator.
func DefaultModelOf(id string) string {
	if id == sample.ID {
		return sample.Model
	}
	if v := vendorOf(id); v != nil {
		return v.model
	}
	return ""
}
