package host

import (
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/host/hostfile"
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

// Validate returns all errors in the file, joined.
func (s Secrets) Validate() error {
	if _, err := hostfile.ReadSecrets(s.File); err != nil {
		return fmt.Errorf("--secrets-file: %w", err)
	}
	return nil
}

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
	return errors.Join(c.checkValues(), c.Models.CheckKeys(), c.Tools.Validate())
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (c *Credentials) Check() error {
	values := *c.Models
	values.ValuesOnly = true
	return errors.Join(c.checkValues(), values.CheckKeys(), c.Tools.Check())
}

func (c *Credentials) checkValues() error {
	_, callers := apiKeys(c.APIKeys)
	_, answers := token.ParseKeys(c.InterruptKeys, nil)
	if answers != nil {
		answers = fmt.Errorf("--interrupt-keys: %w", answers)
	}
	return errors.Join(callers, answers, validateAssetKeys(c.AssetKeys))
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
