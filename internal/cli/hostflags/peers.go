package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host/peer"
)

// Peers are the flags of the other services that a service calls.
func Peers(f *pflag.FlagSet, o *peer.Options, services ...string) {
	for _, name := range services {
		f.StringVar(o.Addr(name), name, "", "HOST:PORT of the "+name+" service, or several, comma-separated; all addresses of a name are used; required")
	}
	f.StringVar(&o.Via.CA, "peer-ca", "", "PEM file of CAs for the other services; empty uses the system's CAs, and no TLS on loopback")
	f.StringVar(&o.Via.Cert, "peer-cert", "", "PEM client certificate chain for the other services; empty disables it")
	f.StringVar(&o.Via.Key, "peer-key", "", "PEM key of --peer-cert")
	f.StringVar(&o.Via.TokenFile, "peer-token-file", "", "file with the bearer token for the other services")
	f.BoolVar(&o.Via.Plaintext, "peer-plaintext", false, "send secrets and the token to the other services without TLS, for networks that are secured otherwise")
}
