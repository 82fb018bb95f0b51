package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// ColdStore are the flags of the cold store that the services of a host share.
func ColdStore(f *pflag.FlagSet, o *host.ColdStore) {
	f.StringVar(&o.URLFile, "cold-postgres-url-file", "", "file with the URL of the PostgreSQL database of the cold store, the same for gateway, dispatcher, acceptor and eventlog; empty means no cold store")
	f.StringVar(&o.Schema, "cold-postgres-schema", o.Schema, "schema of the cold store in that database; another one for each host")
	f.IntVar(&o.Connections, "cold-postgres-connections", o.Connections, "maximum connections to that database")
	f.StringVar(&o.Bucket, "cold-bucket", "", "bucket for the contents of sealed runs, as s3://BUCKET/PREFIX, encrypted; AWS_ variables have the credential; empty stores them in the database")
}

// HotWindow is the flag of the time after which runs are moved to the cold store.
func HotWindow(f *pflag.FlagSet, window *string) {
	f.StringVar(window, "hot-window", *window, "how long an ended run stays in the run log before it moves to the cold store, such as 24h or 7d; unlimited keeps it in the log")
}
