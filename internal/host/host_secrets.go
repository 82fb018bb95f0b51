package host

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/redactor/redact"
)

// hostSecrets are the secrets this process knows: none of them may ever show.
func hostSecrets(specs []auth.Spec, o Options) []redact.Secret {
	var out []redact.Secret
	add := func(id, value string) {
		if len(value) >= redact.MinLength { // shorter ones are not matched
			out = append(out, redact.Secret{ID: id, Value: redact.Value(value)})
		}
	}
	for i, s := range specs {
		add(fmt.Sprintf("api-key-%d", i+1), s.Key)
	}
	for i, key := range token.Secrets(o.AssetKeys) {
		add(fmt.Sprintf("asset-key-%d", i+1), key)
	}
	for i, key := range token.Secrets(o.interruptKeys) {
		add(fmt.Sprintf("interrupt-key-%d", i+1), key)
	}
	add(packs.CanarySecret, o.prompts.Canary)
	return out
}

// SecretFlags name what the services of a host are given of secrets.
func (o *Options) SecretFlags(f *pflag.FlagSet) {
	o.Models.SecretsOnly = true
	f.StringArrayVar(&o.APIKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*, as the gateway has it (repeatable)")
	f.StringArrayVar(&o.interruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs the tokens of interrupts, as the gateway has it (repeatable)")
	f.StringArrayVar(&o.AssetKeys, "asset-keys", nil, "VERSION=KEY that signs the URLs of assets, as the acceptor has it (repeatable)")
	f.StringArrayVar(&o.Models.ProviderFlags, "provider", nil, "provider of models, as the dispatcher has it; its key is read from the same variables (repeatable)")
	f.BoolVar(&o.TestSeams, "test-seams", false, "know the secret that the protocol's tests plant; never in production")
	o.tools.Flags(f)
}

func (o *Options) ValidateSecrets() error {
	if o.TestSeams {
		o.prompts.Canary = packs.CanaryValue()
	}
	_, errModels := o.Models.Providers()
	_, errKeys := token.ParseKeys(o.interruptKeys, nil)
	_, errAssets := token.ParseKeys(o.AssetKeys, nil)
	return errors.Join(errModels, errKeys, errAssets, o.tools.Validate())
}
