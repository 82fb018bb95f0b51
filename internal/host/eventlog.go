package host

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
	"waybill.dev/waybill/services/eventlog/store/writebehind"
)

// ReadModel configures the store of an event log.
type ReadModel struct {
	// DataDir holds a SQLite file; used without PostgresURLFile.
	DataDir string
	// PostgresURLFile holds the URL of a PostgreSQL that all event logs of the host share.
	PostgresURLFile, PostgresSchema string
	PostgresConnections             int
	// IndexPayloads makes lists of runs searchable by the words of their contents.
	IndexPayloads bool
}

// DefaultReadModel are the settings without flags.
func DefaultReadModel() ReadModel {
	def := postgres.DefaultConfig()
	return ReadModel{PostgresSchema: def.Schema, PostgresConnections: def.MaxConns}
}

// Validate returns all errors, joined.
func (o *ReadModel) Validate() error {
	if o.PostgresURLFile == "" {
		return nil
	}
	if err := o.postgres(nil).Validate(); err != nil {
		return fmt.Errorf("--postgres-url-file, --postgres-schema, --postgres-connections: %w", err)
	}
	return nil
}

// Check returns all errors in the values, joined. It does not read the file.
func (o *ReadModel) Check() error {
	cfg := o.postgres(nil)
	cfg.URL, cfg.URLFile = "postgres://database/waybill", ""
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("--postgres-schema, --postgres-connections: %w", err)
	}
	return nil
}

func (o *ReadModel) postgres(log *slog.Logger) postgres.Config {
	return postgres.Config{
		URLFile:  o.PostgresURLFile,
		Schema:   o.PostgresSchema,
		MaxConns: o.PostgresConnections,
		Logger:   log,
	}
}

// readModelFile is the file of the read model in a data directory.
const readModelFile = "waybill.db"

// newEventLog creates the event log and starts reading the run log.
func (c *core) newEventLog(ctx context.Context, o *ReadModel) (*eventlog.Service, error) {
	model, err := c.openReadModel(ctx, o)
	if err != nil {
		return nil, err
	}
	cfg := eventLogConfig(memoryLimit())
	cfg.Words = o.IndexPayloads
	s, err := eventlog.New(cfg, eventlog.Deps{
		Log: c.runs(), Store: model, Cold: c.coldReader(), Unreadable: c.unreadable, Logger: c.log,
	})
	if err != nil {
		return nil, err
	}
	c.group.Start(lifecycle.Part{Name: "event log", Run: s.Run})
	return s, nil
}

// cachePart is the part of the process's memory that each cache of an event log may use, as a divisor,
// and leastCache what it needs.
const (
	cachePart  = 16
	leastCache = 8 << 20
)

// cacheBytes limits a cache to its part of the memory.
func cacheBytes(most int, memory int64) int {
	return int(min(int64(most), max(memory/cachePart, leastCache)))
}

func eventLogConfig(memory int64) eventlog.Config {
	cfg := eventlog.DefaultConfig()
	cfg.HotBytes, cfg.ViewBytes = cacheBytes(cfg.HotBytes, memory), cacheBytes(cfg.ViewBytes, memory)
	return cfg
}

// openReadModel opens a PostgreSQL that processes share, or a SQLite file of this process with
// write-behind.
func (c *core) openReadModel(ctx context.Context, o *ReadModel) (store.Store, error) {
	if o.PostgresURLFile != "" {
		st, err := postgres.Open(ctx, o.postgres(c.log))
		if err != nil {
			return nil, err
		}
		c.later(func() { _ = st.Close() })
		return st, nil
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(o.DataDir, readModelFile)}, c.log, time.Now)
	if err != nil {
		return nil, err
	}
	reserveMemory(sqlite.OutsideBytes)
	cfg := writebehind.DefaultConfig()
	cfg.PendingBytes = cacheBytes(cfg.PendingBytes, memoryLimit())
	model := writebehind.New(st, cfg)
	c.later(func() { _ = model.Close() })
	c.group.Start(lifecycle.Part{Name: "read model", Run: model.Write})
	return model, nil
}
