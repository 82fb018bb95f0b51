// Package sqlite is a cold store in one SQLite file.
//
// Unlike the read model, the file is a source of truth: a commit waits for the disk, and a damaged file
// is an error and not replaced. Deleted bytes are overwritten.
package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"

	"modernc.org/sqlite" // also the driver named "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/protocol/subject"
)

//go:embed schema.sql
var schema1 string

//go:embed schema2.sql
var schema2 string

//go:embed schema3.sql
var schema3 string

// schemas are the steps of the schema; the PRAGMA user_version counts those that were made.
var schemas = []string{schema1, schema2, schema3}

const (
	// cacheBytes is the page cache of a connection.
	cacheBytes = 1 << 20
	readers    = 4
	// OutsideBytes is the maximum memory of a store outside Go's heap.
	OutsideBytes = (readers + 1) * cacheBytes
)

// maxBlocks limits the blocks of an object; see the schema.
const maxBlocks = 1 << 20

// States of an object.
const (
	confirmed = 0
	pending   = 1
	deleted   = 2
	released  = 3 // confirmed, and its frames were deleted without overwriting
)

// Store is a cold.Store. It is safe for concurrent use.
type Store struct {
	// writer is a single connection.
	writer, reader *sql.DB
	// unscrubbed: the write-ahead log may have bytes of deleted objects.
	unscrubbed atomic.Bool
}

var _ cold.Store = (*Store)(nil)

// dsn returns the data source name. Overwritten pages must not stay in the write-ahead log, so it is
// truncated after each deletion.
func dsn(path string) string {
	pragmas := url.Values{"_pragma": {
		"busy_timeout(10000)", "page_size(8192)", "journal_mode(WAL)", "synchronous(FULL)",
		fmt.Sprintf("cache_size(-%d)", cacheBytes>>10), "temp_store(MEMORY)", "secure_delete(ON)",
	}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: pragmas.Encode()}).String()
}

// Open opens the file, and creates it if there is none.
func Open(ctx context.Context, path string) (s *Store, err error) {
	s = &Store{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cold store %s: %w", path, errors.Join(err, s.Close()))
			s = nil
		}
	}()
	if s.writer, err = sql.Open("sqlite", dsn(path)+"&_txlock=immediate"); err != nil {
		return s, err
	}
	s.writer.SetMaxOpenConns(1)
	if err = s.migrate(ctx); err != nil {
		return s, err
	}
	s.unscrubbed.Store(true) // by a process that was killed
	if err = s.scrub(ctx); err != nil && !errors.Is(err, cold.ErrUnavailable) {
		return s, err
	}
	if s.reader, err = sql.Open("sqlite", dsn(path)+"&_query_only=true"); err != nil {
		return s, err
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(1)
	return s, nil
}

func (s *Store) migrate(ctx context.Context) error {
	var at int
	if err := s.writer.QueryRowContext(ctx, "PRAGMA user_version").Scan(&at); err != nil {
		return err
	}
	switch {
	case at == len(schemas):
		return nil
	case at > len(schemas):
		return fmt.Errorf("it is of a later release: its schema has version %d, this program knows %d", at, len(schemas))
	}
	return s.transact(ctx, func(tx *sql.Tx) error {
		for _, step := range schemas[at:] {
			if _, err := tx.ExecContext(ctx, step); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(schemas)))
		return err
	})
}

// Close closes the file.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *Store) transact(ctx context.Context, write func(tx *sql.Tx) error) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return classify(err)
	}
	if err := write(tx); err != nil {
		return classify(errors.Join(err, tx.Rollback()))
	}
	return classify(tx.Commit())
}

// classify converts an error to cold.ErrDamaged if SQLite cannot read the file, and else to
// cold.ErrUnavailable.
func classify(err error) error {
	if err == nil || errors.Is(err, cold.ErrDamaged) || errors.Is(err, cold.ErrUnavailable) {
		return err
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("%w: %w", cold.ErrDamaged, err)
		}
		switch e.Code() {
		case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
			return fmt.Errorf("%w: %w", cold.ErrDamaged, err)
		}
	}
	return fmt.Errorf("%w: %w", cold.ErrUnavailable, err)
}

// Put stores objects; see cold.Store.
func (s *Store) Put(ctx context.Context, objects ...*cold.Object) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		for _, o := range objects {
			if err := put(ctx, tx, o); err != nil {
				return fmt.Errorf("store run %s: %w", o.Run.RunID, err)
			}
		}
		return nil
	})
}

func put(ctx context.Context, tx *sql.Tx, o *cold.Object) error {
	if len(o.Blocks) > maxBlocks {
		return fmt.Errorf("%d blocks, at most %d can be stored", len(o.Blocks), maxBlocks)
	}
	switch id, state, err := find(ctx, tx, o.Run); {
	case err == nil && state == deleted:
		return nil
	case err == nil:
		if err := remove(ctx, tx, id); err != nil {
			return err
		}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO objects (tenant, run_id, workflow_id, state) VALUES (?, ?, ?, ?)`,
		o.Run.Tenant, o.Run.RunID, o.Run.WorkflowID, pending)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	for n, b := range o.Blocks {
		hash, err := hex.DecodeString(b.Hash)
		if err != nil {
			return fmt.Errorf("hash of block %d: %w", n, err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO blocks (id, next, pos, hash, data) VALUES (?, ?, ?, ?, ?)`,
			id*maxBlocks+int64(n), b.Next, int64(b.Pos), hash, b.Data) //nolint:gosec // G115: positions stay far below 2^63
		if err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE totals SET runs = runs + 1, bytes = bytes + ?`, o.Bytes())
	return err
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// find returns an object. Errors: sql.ErrNoRows.
func find(ctx context.Context, in querier, run subject.Run) (id int64, state int, err error) {
	err = in.QueryRowContext(ctx, `SELECT id, state FROM objects WHERE tenant = ? AND run_id = ?`, run.Tenant, run.RunID).Scan(&id, &state)
	return id, state, err
}

// remove removes an object that is not deleted.
func remove(ctx context.Context, tx *sql.Tx, id int64) error {
	const blocks = ` WHERE id >= ?1 * ` + blocksEach + ` AND id < (?1 + 1) * ` + blocksEach
	for _, step := range []string{
		`UPDATE totals SET runs = runs - 1, bytes = bytes - (SELECT coalesce(sum(length(data)), 0) FROM blocks` + blocks + `)`,
		`DELETE FROM blocks` + blocks,
		`DELETE FROM objects WHERE id = ?1`,
	} {
		if _, err := tx.ExecContext(ctx, step, id); err != nil {
			return err
		}
	}
	return nil
}

// blocksEach is maxBlocks in statements.
const blocksEach = `1048576`

// Releasing notes that the frames of runs are about to be deleted without overwriting; see cold.Store.
func (s *Store) Releasing(ctx context.Context, objects ...cold.Ref) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		for _, o := range objects {
			id, state, err := withHash(ctx, tx, o.Run, o.Hash)
			if err != nil {
				return err
			}
			if state != pending {
				continue
			}
			if _, err = tx.ExecContext(ctx, `UPDATE objects SET releasing = 1 WHERE id = ?`, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// Confirm ends the pending state of objects; see cold.Store.
func (s *Store) Confirm(ctx context.Context, objects ...cold.Ref) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		for _, o := range objects {
			id, state, err := withHash(ctx, tx, o.Run, o.Hash)
			if err != nil {
				return err
			}
			if state != pending {
				continue
			}
			to := confirmed
			if o.Released {
				to = released
			}
			if _, err = tx.ExecContext(ctx, `UPDATE objects SET state = ? WHERE id = ?`, to, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// withHash returns the object of a run if it has a hash. The state of no such object is deleted.
func withHash(ctx context.Context, tx *sql.Tx, run subject.Run, hash string) (id int64, state int, err error) {
	id, state, err = find(ctx, tx, run)
	if errors.Is(err, sql.ErrNoRows) || err == nil && state == deleted {
		return 0, deleted, nil
	}
	if err != nil {
		return 0, 0, err
	}
	var last []byte
	err = tx.QueryRowContext(ctx, `SELECT hash FROM blocks WHERE id < (? + 1) * `+blocksEach+` ORDER BY id DESC LIMIT 1`, id).Scan(&last)
	if err != nil {
		return 0, 0, err
	}
	if hex.EncodeToString(last) != hash {
		return 0, deleted, nil
	}
	return id, state, nil
}

// Pending returns runs with pending objects; see cold.Store.
func (s *Store) Pending(ctx context.Context, after cold.Cursor, limit int) (runs []subject.Run, next cold.Cursor, err error) {
	id, _ := strconv.ParseInt(string(after), 10, 64) // the empty cursor is 0
	rows, err := s.reader.QueryContext(ctx, `SELECT id, tenant, workflow_id, run_id FROM objects
		WHERE state = 1 AND id > ? ORDER BY id LIMIT ?`, id, limit)
	if err != nil {
		return nil, after, classify(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports errors
	for rows.Next() {
		var r subject.Run
		if err := rows.Scan(&id, &r.Tenant, &r.WorkflowID, &r.RunID); err != nil {
			return nil, after, classify(err)
		}
		runs = append(runs, r)
	}
	return runs, cold.Cursor(strconv.FormatInt(id, 10)), classify(rows.Err())
}

// Discard removes a pending object; see cold.Store.
func (s *Store) Discard(ctx context.Context, run subject.Run, hash string) error {
	err := s.transact(ctx, func(tx *sql.Tx) error {
		id, state, err := withHash(ctx, tx, run, hash)
		if err != nil || state != pending {
			return err
		}
		s.unscrubbed.Store(true)
		return remove(ctx, tx, id)
	})
	return errors.Join(err, s.scrub(ctx))
}

// Delete removes the object of an erased run; see cold.Store.
func (s *Store) Delete(ctx context.Context, run subject.Run) error {
	err := s.transact(ctx, func(tx *sql.Tx) error {
		id, state, err := find(ctx, tx, run)
		switch {
		case err == nil && state == deleted:
			return nil
		case err == nil:
			s.unscrubbed.Store(true)
			if err := remove(ctx, tx, id); err != nil {
				return err
			}
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		return tombstone(ctx, tx, run)
	})
	if errors.Is(err, cold.ErrDamaged) { // its blocks cannot be removed
		err = errors.Join(err, s.transact(ctx, func(tx *sql.Tx) error { return tombstone(ctx, tx, run) }))
	}
	return errors.Join(err, s.scrub(ctx))
}

// tombstone marks a run as deleted, and does not read the blocks that it may still have.
func tombstone(ctx context.Context, tx *sql.Tx, run subject.Run) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO objects (tenant, run_id, workflow_id, state) VALUES (?1, ?2, '', ?3)
		ON CONFLICT (tenant, run_id) DO UPDATE SET workflow_id = '', state = ?3, releasing = 0`, run.Tenant, run.RunID, deleted)
	return err
}

// scrub removes deleted bytes from the write-ahead log. It waits for readers, and fails if they take too
// long: the next deletion, also of the same run, tries again.
func (s *Store) scrub(ctx context.Context) error {
	if !s.unscrubbed.Load() {
		return nil
	}
	var busy, pages, done int
	if err := s.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done); err != nil {
		return classify(err)
	}
	if busy != 0 {
		return fmt.Errorf("%w: a reader keeps deleted bytes in the write-ahead log", cold.ErrUnavailable)
	}
	s.unscrubbed.Store(false)
	return nil
}

// Totals counts the objects; see cold.Store.
func (s *Store) Totals(ctx context.Context) (t cold.Totals, err error) {
	err = s.reader.QueryRowContext(ctx, `SELECT runs, bytes, (SELECT count(*) FROM objects WHERE state = 1) FROM totals`).
		Scan(&t.Runs, &t.Bytes, &t.Pending)
	return t, classify(err)
}

// Blocks returns the blocks of a run; see cold.Reader.
func (s *Store) Blocks(ctx context.Context, run subject.Run) (subject.Run, []cold.Block, error) {
	of := subject.Run{Tenant: run.Tenant, RunID: run.RunID}
	rows, err := s.reader.QueryContext(ctx, `SELECT o.workflow_id, b.next, b.pos, b.hash
		FROM objects o JOIN blocks b ON b.id >= o.id * `+blocksEach+` AND b.id < (o.id + 1) * `+blocksEach+`
		WHERE o.tenant = ? AND o.run_id = ? AND o.state <> 2 ORDER BY b.id`, run.Tenant, run.RunID)
	if err != nil {
		return of, nil, classify(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports errors
	var blocks []cold.Block
	for rows.Next() {
		var (
			b    cold.Block
			hash []byte
		)
		if err := rows.Scan(&of.WorkflowID, &b.Next, &b.Pos, &hash); err != nil {
			return of, nil, classify(err)
		}
		b.Hash = hex.EncodeToString(hash)
		blocks = append(blocks, b)
	}
	switch err := rows.Err(); {
	case err != nil:
		return of, nil, classify(err)
	case len(blocks) == 0:
		return of, nil, s.none(ctx, run)
	}
	return of, blocks, nil
}

// none returns why a run has no blocks.
func (s *Store) none(ctx context.Context, run subject.Run) error {
	_, state, err := find(ctx, s.reader, run)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %s", cold.ErrNotFound, run.RunID)
	case err != nil:
		return classify(err)
	case state == deleted:
		return fmt.Errorf("%w: %s", cold.ErrDeleted, run.RunID)
	}
	return fmt.Errorf("%w: run %s has no blocks", cold.ErrDamaged, run.RunID)
}

// Data returns the data of a block; see cold.Reader.
func (s *Store) Data(ctx context.Context, run subject.Run, block int) (data []byte, err error) {
	err = s.reader.QueryRowContext(ctx, `SELECT b.data FROM objects o JOIN blocks b ON b.id = o.id * `+blocksEach+` + ?
		WHERE o.tenant = ? AND o.run_id = ? AND o.state <> 2`, block, run.Tenant, run.RunID).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s", cold.ErrNotFound, run.RunID)
	}
	return data, classify(err)
}
