package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	_ "modernc.org/sqlite" // the driver named "sqlite"

	"waybill.dev/waybill/services/eventlog/store"
)

// pragmas of every connection. Pages of 8 kB hold frames of usual size without
// overflow; the WAL is folded back every 64 MB.
var pragmas = url.Values{"_pragma": {
	"busy_timeout(5000)", "page_size(8192)", "journal_mode(WAL)", "synchronous(NORMAL)",
	"wal_autocheckpoint(8000)", fmt.Sprintf("cache_size(-%d)", cacheBytes>>10), "temp_store(MEMORY)",
}}

const (
	// cacheBytes is how much of the file a connection keeps.
	cacheBytes = 16 << 20
	// OutsideBytes is what a store with the usual number of connections has at most beside
	// Go's heap, where no GOMEMLIMIT sees it.
	OutsideBytes = (1 + defaultReaders) * cacheBytes
)

// thoroughBytes is up to which size a file is checked entry by entry at start;
// a larger one is only walked, which takes a second for each gigabyte or two.
const thoroughBytes = 256 << 20

// handle is an open file.
type handle struct {
	wdb, rdb *sql.DB
	conn     *sql.Conn // the one that writes
	write    writeStmts
	read     readStmts
}

// open opens and checks the file, and brings its schema up to date. A file that
// cannot serve is reported as store.ErrDamaged.
func open(ctx context.Context, cfg Config) (h *handle, err error) {
	dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: cfg.Path, RawQuery: pragmas.Encode()}).String()
	h = &handle{}
	defer func() {
		if err != nil {
			err = classify(errors.Join(err, h.close()))
			h = nil
		}
	}()
	if h.wdb, err = sql.Open("sqlite", dsn); err != nil {
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
	if h.rdb, err = sql.Open("sqlite", dsn+"&_query_only=true"); err != nil {
		return h, err
	}
	h.rdb.SetMaxOpenConns(cfg.Readers)
	h.rdb.SetMaxIdleConns(cfg.Readers)
	return h, h.prepare(ctx)
}

// check asks SQLite whether the file hangs together.
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

// prepare compiles the statements. They fit the schema, so when one does not
// compile, the schema in the file is not the one its version promises.
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
