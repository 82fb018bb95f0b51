package host

import (
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/tools"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/redactor/redact"
)

// Secrets configure redaction for all tenants.
type Secrets struct {
	// File is a YAML file of secret ids and values; empty disables it.
	File string
	// Shapes also redacts text that looks like a secret.
	Shapes bool
}

// DefaultSecrets are the settings without flags.
func DefaultSecrets() Secrets { return Secrets{Shapes: true} }

// Credentials are the secrets in the settings of a host's services. A redactor has all of them,
// other processes those of their own settings.
type Credentials struct {
	APIKeys, AssetKeys, InterruptKeys []string
	// Models and Tools have keys in the environment; nil ignores them.
	Models *models.Options
	Tools  *tools.Options
	// headers are the values of headers that are sent to collectors of telemetry.
	headers []string
	// canary is the secret that the protocol's tests plant; empty without test seams.
	canary string
}

// Validate returns all errors, joined.
func (c *Credentials) Validate() error {
	_, errKeys := token.ParseKeys(c.InterruptKeys, nil)
	_, errAssets := token.ParseKeys(c.AssetKeys, nil)
	return errors.Join(c.Models.CheckKeys(), errKeys, errAssets, c.Tools.Validate())
}

// list returns the secrets that are long enough to match, each with an id.
func (c *Credentials) list() ([]redact.Secret, error) {
	keys, err := parseAPIKeys(c.APIKeys)
	if err != nil {
		return nil, err
	}
	var out []redact.Secret
	add := func(id, value string) {
		if len(value) >= redact.MinLength {
			out = append(out, redact.Secret{ID: id, Value: redact.Value(value)})
		}
	}
	for i, k := range keys {
		add(fmt.Sprintf("api-key-%d", i+1), k.Key)
	}
	for i, key := range token.Secrets(c.AssetKeys) {
		add(fmt.Sprintf("asset-key-%d", i+1), key)
	}
	for i, key := range token.Secrets(c.InterruptKeys) {
		add(fmt.Sprintf("interrupt-key-%d", i+1), key)
	}
	for i, value := range c.headers {
		add(fmt.Sprintf("otlp-header-%d", i+1), value)
	}
	add(packs.CanarySecret, c.canary)
	if c.Models != nil {
		out = append(out, c.Models.Secrets()...)
	}
	if c.Tools != nil {
		out = append(out, c.Tools.Secrets()...)
	}
	return out, nil
}
