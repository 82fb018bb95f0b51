package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"waybill.dev/waybill/services/eventlog/store"
)

// classify turns what SQLite says about a broken file into store.ErrDamaged.
func classify(err error) error {
	if err == nil || errors.Is(err, store.ErrDamaged) {
		return err
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ { // the file ends too early
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return err
}

// misfit turns SQLite's complaint about a statement of ours into damage: our
// statements fit our schema, so the file holds another one.
func misfit(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_ERROR {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return err
}

// unreadable is the error of a Scan: a value that does not fit its column is
// damage too.
func unreadable(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*sqlite.Error](err); ok || err == nil || ctx.Err() != nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrDamaged, err)
}
