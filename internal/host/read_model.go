package host

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
	"waybill.dev/waybill/services/eventlog/store/writebehind"
)

// postgresOptions say which PostgreSQL holds the read model.
type postgresOptions struct {
	URLFile, schema string
	connections     int
}

func (o *postgresOptions) Flags(f *pflag.FlagSet) {
	def := postgres.DefaultConfig()
	f.StringVar(&o.URLFile, "postgres-url-file", "", "file with the URL of the PostgreSQL that all event logs of the host share for their read model; empty: a SQLite file in --data-dir")
	f.StringVar(&o.schema, "postgres-schema", def.Schema, "begins the names of the schemas in --postgres-url-file's database")
	f.IntVar(&o.connections, "postgres-connections", def.MaxConns, "connections to PostgreSQL, at most; one of them is kept for writing")
}

func (o *postgresOptions) config(log *slog.Logger) postgres.Config {
	return postgres.Config{URLFile: o.URLFile, Schema: o.schema, MaxConns: o.connections, Logger: log}
}

func (o *postgresOptions) Validate() error {
	if o.URLFile == "" {
		return nil
	}
	if err := o.config(nil).Validate(); err != nil {
		return fmt.Errorf("--postgres-url-file, --postgres-schema, --postgres-connections: %w", err)
	}
	return nil
}

// openReadModel opens what the event log keeps: PostgreSQL, which others fill as well, or
// a file of this process, written behind.
func (h *Host) openReadModel(ctx context.Context) (store.Store, error) {
	if o := &h.opts.Postgres; o.URLFile != "" {
		st, err := postgres.Open(ctx, o.config(h.Log))
		if err != nil {
			return nil, err
		}
		h.later(func() { _ = st.Close() })
		return st, nil
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(h.opts.DataDir, "waybill.db")}, h.Log, time.Now)
	if err != nil {
		return nil, err
	}
	reserveMemory(sqlite.OutsideBytes)
	model := writebehind.New(st, writebehind.DefaultConfig())
	h.later(func() { _ = model.Close() })
	h.Group.Start(lifecycle.Part{Name: "read model", Run: model.Write})
	return model, nil
}
