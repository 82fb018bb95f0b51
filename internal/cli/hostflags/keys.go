package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// HostKey is the flag of the secret that all services of a host share.
func HostKey(f *pflag.FlagSet, o *host.Key) {
	f.StringVar(&o.File, "host-key-file", "", "file with the host's secret, at least 32 bytes, the same for all services; run ids, tokens and sealed values derive from it; required")
}

// Credentials are the flags of the secrets in the settings of other services.
func Credentials(f *pflag.FlagSet, o *host.Credentials) {
	f.StringArrayVar(&o.APIKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*, as set for the gateway (repeatable)")
	f.StringArrayVar(&o.InterruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs interrupt tokens, as set for the gateway (repeatable)")
	f.StringArrayVar(&o.AssetKeys, "asset-keys", nil, "VERSION=KEY that signs asset URLs, as set for the acceptor (repeatable)")
	f.StringArrayVar(&o.Models.ProviderFlags, "provider", nil, "model provider, as set for the dispatcher; its key is read from the same variables (repeatable)")
	f.StringVar(&o.Models.SettingsFile, "provider-settings", "", "JSON file of the providers' settings, as set for the dispatcher; keys that it names are redacted")
	toolFlags(f, o.Tools)
}
