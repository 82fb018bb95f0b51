package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// HostKey is the flag of the secret that all services of a host share.
func HostKey(f *pflag.FlagSet, o *host.Key) {
	f.StringVar(&o.File, "host-key-file", "", "file with the secret of the host, of 32 bytes at least and the same for all its services: ids of runs, tokens and sealed values derive from it; required")
}

// Credentials are the flags of the secrets in the settings of other services.
func Credentials(f *pflag.FlagSet, o *host.Credentials) {
	f.StringArrayVar(&o.APIKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*, as the gateway has it (repeatable)")
	f.StringArrayVar(&o.InterruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs the tokens of interrupts, as the gateway has it (repeatable)")
	f.StringArrayVar(&o.AssetKeys, "asset-keys", nil, "VERSION=KEY that signs the URLs of assets, as the acceptor has it (repeatable)")
	f.StringArrayVar(&o.Models.ProviderFlags, "provider", nil, "provider of models, as the dispatcher has it; its key is read from the same variables (repeatable)")
	toolFlags(f, o.Tools)
}
