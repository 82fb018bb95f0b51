package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
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

// Recovery are the flags of an embedded log's start.
func Recovery(f *pflag.FlagSet, o *host.Recovery) {
	f.DurationVar(&o.Timeout, "log-recovery-timeout", 0, "maximum time for the embedded log to recover its files at a start; then the process ends; 0 means 1 minute, and 1 second for each 50 MB of files")
	f.Int64Var(&o.Bytes, "log-recovery-bytes", 0, "maximum memory for that; 0 means 256 MB and twice the size of the files")
}
