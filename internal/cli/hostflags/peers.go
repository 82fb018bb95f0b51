package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host/peer"
)

// Peers are the flags of the other services that a service calls.
func Peers(f *pflag.FlagSet, o *peer.Options, services ...string) {
	for _, name := range services {
		f.StringVar(o.Addr(name), name, "", "HOST:PORT of the "+name+" service, or several divided by commas; of a name, all addresses are used; required")
	}
	f.StringVar(&o.Via.CA, "peer-ca", "", "PEM certificates that vouch for the other services; empty: those that the system trusts, and no TLS on loopback")
	f.StringVar(&o.Via.Cert, "peer-cert", "", "PEM certificate chain to show to the other services; empty: none")
	f.StringVar(&o.Via.Key, "peer-key", "", "PEM key of --peer-cert")
	f.StringVar(&o.Via.TokenFile, "peer-token-file", "", "file with the bearer token for the other services")
	f.BoolVar(&o.Via.Plaintext, "peer-plaintext", false, "send secrets and the token to the other services in clear, because something else guards the way")
}
