package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host/natsstore"
)

// NATS are the flags of the run log in NATS; without says what happens without --nats.
func NATS(f *pflag.FlagSet, o *natsstore.Address, without string) {
	NATSConnection(f, o, without)
	f.IntVar(&o.Replicas, "log-replicas", o.Replicas, "copies of the run log in the NATS cluster: 1, 3 or 5")
	f.IntVar(&o.InSync, "log-in-sync", 0, "copies that must be in sync for the service to be ready; 0 means a majority, which NATS needs to accept writes")
	f.StringSliceVar(&o.Monitors, "nats-monitor", nil, "monitoring URL of each NATS server, such as http://nats:8222; a service is not ready if a server does not sync every write; empty disables the check")
}

// NATSConnection are the flags of a connection that makes no log.
func NATSConnection(f *pflag.FlagSet, o *natsstore.Address, without string) {
	f.StringVar(&o.URL, "nats", "", "URL of a NATS server with JetStream, or several, comma-separated; "+without)
	f.StringVar(&o.Creds, "nats-creds", "", "credentials file for --nats")
	f.StringVar(&o.NKey, "nats-nkey", "", "file with the seed of an nkey for --nats")
	f.StringVar(&o.CA, "nats-ca", "", "PEM file of CAs for --nats over TLS; empty uses the system's CAs")
	f.StringVar(&o.Cert, "nats-cert", "", "PEM client certificate chain for --nats; empty disables it")
	f.StringVar(&o.Key, "nats-key", "", "PEM key of --nats-cert")
}
