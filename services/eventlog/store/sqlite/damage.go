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

// classify converts SQLite's errors about a broken file to store.ErrDamaged.
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
	if e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ { // the file is truncated
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return err
}

// misfit converts an error about one of our statements to damage: our statements fit our schema, so
// the file holds another one.
func misfit(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_ERROR {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return err
}

// unreadable converts the error of a Scan: a value that does not fit its column is damage too.
func unreadable(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*sqlite.Error](err); ok || err == nil || ctx.Err() != nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrDamaged, err)
}
