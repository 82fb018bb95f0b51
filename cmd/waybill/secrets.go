package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/redactor/redact"
)

// readSecrets reads a YAML file of secret ids and values; none if file is empty.
// Errors name lines, and neither ids nor values: an id may hold what should be secret.
// A file that others may read is refused.
func readSecrets(file string) ([]redact.Secret, error) {
	if file == "" {
		return nil, nil
	}
	b, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, unwrapped(err))
	}
	var (
		values map[string]string
		doc    yaml.Node
	)
	if yaml.Unmarshal(b, &values) != nil || yaml.Unmarshal(b, &doc) != nil { // the parser's error quotes the file
		return nil, fmt.Errorf("%s: want lines of the form id: value", file)
	}
	lines := linesOf(&doc)
	place := func(id string) string {
		if lines[id] == 0 { // merged from elsewhere in the file
			return file
		}
		return fmt.Sprintf("%s:%d", file, lines[id])
	}
	var (
		out  []redact.Secret
		errs []error
	)
	for _, id := range slices.Sorted(maps.Keys(values)) {
		s := redact.Secret{ID: id, Value: redact.Value(values[id])}
		if err := s.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place(id), err))
		}
		if len(s.Value) < redact.MinLength {
			errs = append(errs, fmt.Errorf("%s: fewer than %d bytes cannot be told from other text", place(id), redact.MinLength))
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}

// linesOf gives the line of each member of a document that is a map.
func linesOf(doc *yaml.Node) map[string]int {
	lines := map[string]int{}
	for _, m := range doc.Content {
		for i := 0; i+1 < len(m.Content); i += 2 {
			id := m.Content[i].Value
			if alias := m.Content[i].Alias; alias != nil {
				id = alias.Value
			}
			lines[id] = m.Content[i].Line
		}
	}
	return lines
}

// canarySecret is the secret that the protocol's suite plants and looks for.
const canarySecret = "openwop-conformance-canary-secret"

// hostSecrets are the secrets this process knows: none of them may ever show.
func hostSecrets(specs []auth.Spec, o devOptions) []redact.Secret {
	var out []redact.Secret
	add := func(id, value string) {
		if len(value) >= redact.MinLength { // shorter ones are not matched
			out = append(out, redact.Secret{ID: id, Value: redact.Value(value)})
		}
	}
	for i, s := range specs {
		add(fmt.Sprintf("api-key-%d", i+1), s.Key)
	}
	for i, key := range token.Secrets(o.assetKeys) {
		add(fmt.Sprintf("asset-key-%d", i+1), key)
	}
	for i, key := range token.Secrets(o.interruptKeys) {
		add(fmt.Sprintf("interrupt-key-%d", i+1), key)
	}
	add(canarySecret, o.prompts.canary)
	return out
}

// secretFlags name what the services of a host are given of secrets.
func (o *devOptions) secretFlags(f *pflag.FlagSet) {
	o.models.secretsOnly = true
	f.StringArrayVar(&o.apiKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*, as the gateway has it (repeatable)")
	f.StringArrayVar(&o.interruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs the tokens of interrupts, as the gateway has it (repeatable)")
	f.StringArrayVar(&o.assetKeys, "asset-keys", nil, "VERSION=KEY that signs the URLs of assets, as the acceptor has it (repeatable)")
	f.StringArrayVar(&o.models.providers, "provider", nil, "provider of models, as the dispatcher has it; its key is read from the same variables (repeatable)")
	f.BoolVar(&o.testSeams, "test-seams", false, "know the secret that the protocol's tests plant; never in production")
	o.tools.flags(f)
}

func (o *devOptions) validateSecrets() error {
	if o.testSeams {
		o.prompts.canary = canaryValue()
	}
	_, errModels := o.models.given()
	_, errKeys := token.ParseKeys(o.interruptKeys, nil)
	_, errAssets := token.ParseKeys(o.assetKeys, nil)
	return errors.Join(errModels, errKeys, errAssets, o.tools.validate())
}
