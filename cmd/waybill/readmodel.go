package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"runtime/debug"
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
	urlFile, schema string
	connections     int
}

func (o *postgresOptions) flags(f *pflag.FlagSet) {
	def := postgres.DefaultConfig()
	f.StringVar(&o.urlFile, "postgres-url-file", "", "file with the URL of the PostgreSQL that all event logs of the host share for their read model; empty: a SQLite file in --data-dir")
	f.StringVar(&o.schema, "postgres-schema", def.Schema, "begins the names of the schemas in --postgres-url-file's database")
	f.IntVar(&o.connections, "postgres-connections", def.MaxConns, "connections to PostgreSQL, at most; one of them is kept for writing")
}

func (o *postgresOptions) config(log *slog.Logger) postgres.Config {
	return postgres.Config{URLFile: o.urlFile, Schema: o.schema, MaxConns: o.connections, Logger: log}
}

func (o *postgresOptions) validate() error {
	if o.urlFile == "" {
		return nil
	}
	if err := o.config(nil).Validate(); err != nil {
		return fmt.Errorf("--postgres-url-file, --postgres-schema, --postgres-connections: %w", err)
	}
	return nil
}

// openReadModel opens what the event log keeps: PostgreSQL, which others fill as well, or
// a file of this process, written behind.
func (h *host) openReadModel(ctx context.Context) (store.Store, error) {
	if o := &h.opts.postgres; o.urlFile != "" {
		st, err := postgres.Open(ctx, o.config(h.log))
		if err != nil {
			return nil, err
		}
		h.later(func() { _ = st.Close() })
		return st, nil
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(h.opts.dataDir, "waybill.db")}, h.log, time.Now)
	if err != nil {
		return nil, err
	}
	leaveRoom(sqlite.OutsideBytes)
	model := writebehind.New(st, writebehind.DefaultConfig())
	h.later(func() { _ = model.Close() })
	h.group.Start(lifecycle.Part{Name: "read model", Run: model.Write})
	return model, nil
}

// leaveRoom lowers the limit of Go's memory by what a part of the process takes beside it, to
// half of it at the most, so that both together stay below what GOMEMLIMIT was set for.
// Without GOMEMLIMIT there is no limit.
func leaveRoom(outside int64) {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-outside, limit/2))
	}
}
