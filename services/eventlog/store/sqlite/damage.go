package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

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

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum sums up the fields of a row, each with its length.
type checksum struct {
	crc uint32
	buf [binary.MaxVarintLen64]byte
}

func (c *checksum) text(s string) { c.bytes([]byte(s)) }

func (c *checksum) bytes(b []byte) {
	c.number(int64(len(b)))
	c.crc = crc32.Update(c.crc, castagnoli, b)
}

func (c *checksum) number(n int64) {
	c.crc = crc32.Update(c.crc, castagnoli, binary.AppendVarint(c.buf[:0], n))
}

// verify compares with the sum a row was stored with.
func (c *checksum) verify(stored int64, what string, key store.Key) error {
	if int64(c.crc) == stored {
		return nil
	}
	return fmt.Errorf("%w: checksum of %s of run %s", store.ErrDamaged, what, key.RunID)
}
