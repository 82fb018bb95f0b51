package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // the driver named "sqlite"

	"waybill.dev/waybill/services/eventlog/store"
)

// dsn returns the data source name for a connection with a cache of the given size. Pages of 8 kB
// hold frames of usual size without overflow; the WAL is checkpointed every 64 MB.
func dsn(path string, cache int) string {
	pragmas := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "page_size(8192)", "journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint(8000)", fmt.Sprintf("cache_size(-%d)", cache>>10), "temp_store(MEMORY)",
		"secure_delete(ON)", // also for cells that move to another page
	}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: pragmas.Encode()}).String()
}

// busyTimeout is how long a statement waits for another connection's lock.
const busyTimeout = 5 * time.Second

const (
	// writerCache and readerCache are the page caches of a connection. A reader's pages are also in
	// the kernel's cache, a writer's are dirty.
	writerCache = 8 << 20
	readerCache = 4 << 20
	// OutsideBytes is the maximum memory of a store outside Go's heap with the default number of
	// connections. GOMEMLIMIT does not include it.
	OutsideBytes = writerCache + defaultReaders*readerCache
)

// thoroughBytes is the size up to which a file is fully checked at start; larger files get a quick
// check, which takes a second per gigabyte or two.
const thoroughBytes = 256 << 20

// handle is an open file.
type handle struct {
	wdb, rdb *sql.DB
	conn     *sql.Conn // the writer
	write    writeStmts
	read     readStmts
}

// open opens and checks the file, and migrates its schema. An unusable file is reported as
// store.ErrDamaged.
func open(ctx context.Context, cfg Config) (h *handle, err error) {
	h = &handle{}
	defer func() {
		if err != nil {
			err = classify(errors.Join(err, h.close()))
			h = nil
		}
	}()
	if h.wdb, err = sql.Open("sqlite", dsn(cfg.Path, writerCache)); err != nil {
		return h, err
	}
	h.wdb.SetMaxOpenConns(1)
	if h.conn, err = h.wdb.Conn(ctx); err != nil {
		return h, err
	}
	if err = check(ctx, h.conn, cfg.Path); err != nil {
		return h, err
	}
	if err = migrate(ctx, h.conn); err != nil {
		return h, err
	}
	if h.rdb, err = sql.Open("sqlite", dsn(cfg.Path, readerCache)+"&_query_only=true"); err != nil {
		return h, err
	}
	h.rdb.SetMaxOpenConns(cfg.Readers)
	h.rdb.SetMaxIdleConns(cfg.Readers)
	return h, h.prepare(ctx)
}

// check runs SQLite's integrity check.
func check(ctx context.Context, conn *sql.Conn, path string) error {
	pragma := "PRAGMA integrity_check(1)"
	if info, err := os.Stat(path); err == nil && info.Size() > thoroughBytes {
		pragma = "PRAGMA quick_check(1)"
	}
	var verdict string
	if err := conn.QueryRowContext(ctx, pragma).Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", store.ErrDamaged, verdict)
	}
	return nil
}

// prepare compiles the statements. They fit the schema, so if one does not compile, the file's
// schema is not that of its version.
func (h *handle) prepare(ctx context.Context) error {
	if err := h.write.prepare(ctx, h.conn); err != nil {
		return misfit(err)
	}
	return misfit(h.read.prepare(ctx, h.rdb))
}

func (h *handle) close() error {
	var errs []error
	if h.rdb != nil {
		errs = append(errs, h.read.close(), h.rdb.Close())
	}
	if h.conn != nil {
		errs = append(errs, h.write.close(), h.conn.Close())
	}
	if h.wdb != nil {
		errs = append(errs, h.wdb.Close())
	}
	return errors.Join(errs...)
}
