// Package postgres is a cold store in a PostgreSQL database that the services of a host share.
//
// The database has the index: the runs, their blocks and the hashes. The contents are in the database,
// too, or in batches in a bucket. A batch is one object with the runs of one Put, each encrypted with a
// key of its own, which the index has. To delete a run is to delete its key; the batch is removed with its
// last run. So a bucket costs one request for a hundred runs, and is never written again.
//
// A commit waits for the disk, whatever the server's default is. Writers take turns.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill.dev/waybill/internal/runlog/cold"
)

//go:embed schema.sql
var schema string

// schemaVersion is the version of the tables.
const schemaVersion = 1

// States of an object.
const (
	confirmed = 0
	pending   = 1
	deleted   = 2
)

// Store is a cold.Store. It is safe for concurrent use, also by several processes.
type Store struct {
	cfg  Config
	pool *pgxpool.Pool
	name string // the schema, quoted

	mu sync.Mutex // guards ready
	// ready: the tables are there.
	ready bool

	batch recentBatch
}

var _ cold.Store = (*Store)(nil)

// Open creates a store. The tables are created when the database is first reached, which need not be now.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	pc, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, name: pgx.Identifier{cfg.Schema}.Sanitize()}
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), pc); err != nil {
		return nil, errors.New("the settings of the database cannot be used") // the driver's error may quote the URL
	}
	return s, nil
}

// Close ends the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// transact calls do in a transaction that is durable when it returns.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return s.begin(ctx, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		// Writers take turns, so that none waits for a lock of another in a circle.
		if _, err := tx.Exec(ctx, `SELECT 1 FROM totals FOR UPDATE`); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// view calls do in a transaction that reads.
func (s *Store) view(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return s.begin(ctx, pgx.ReadOnly, do)
}

func (s *Store) begin(ctx context.Context, mode pgx.TxAccessMode, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := s.prepare(ctx); err != nil {
		return classify(err)
	}
	return classify(pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: mode}, func(tx pgx.Tx) error {
		if err := s.settings(ctx, tx); err != nil {
			return err
		}
		return do(ctx, tx)
	}))
}

// settings sets what a transaction depends on. A server whose commits do not wait for the disk could lose
// runs that have left the log.
func (s *Store) settings(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config('search_path', $1, true),
		set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, true)`,
		s.name)
	return err
}

// setupLock is the key of the advisory lock of processes that create tables.
const setupLock = 0x77617962696c6c

// prepare creates the tables, and checks their version.
func (s *Store) prepare(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return nil
	}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(setupLock)); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, s.name+".totals").Scan(&there); err != nil {
			return err
		}
		if !there {
			return s.create(ctx, tx)
		}
		var version int
		if err := tx.QueryRow(ctx, `SELECT version FROM `+s.name+`.totals`).Scan(&version); err != nil {
			return err
		}
		if version > schemaVersion {
			return fmt.Errorf("the cold store is of a later release: its schema has version %d, this program knows %d", version, schemaVersion)
		}
		return nil
	})
	s.ready = err == nil
	return err
}

func (s *Store) create(ctx context.Context, tx pgx.Tx) error {
	var schemaThere bool
	if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, s.name).Scan(&schemaThere); err != nil {
		return err
	}
	if !schemaThere { // else a user without the right to create schemas may use one
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+s.name); err != nil {
			return err
		}
	}
	if err := s.settings(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol)
	return err
}

// corrupt are the codes of errors by which the server reports that stored data is corrupt:
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
var corrupt = []string{"XX001", "XX002"}

// classify converts an error to one of package cold. The driver's errors may quote the URL.
func classify(err error) error {
	if err == nil || errors.Is(err, cold.ErrDamaged) || errors.Is(err, cold.ErrUnavailable) || errors.Is(err, cold.ErrNotFound) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if slices.Contains(corrupt, e.Code) {
			return fmt.Errorf("%w: %w", cold.ErrDamaged, err)
		}
		return fmt.Errorf("%w: %w", cold.ErrUnavailable, err)
	}
	if e, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fmt.Errorf("%w: connect to the database %s: %w", cold.ErrUnavailable, e.Config.Database, lastError(err))
	}
	return fmt.Errorf("%w: %w", cold.ErrUnavailable, err)
}

// lastError returns the cause of a failed connection without the driver's description, which names the
// user and the host.
func lastError(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			break
		}
		err = next
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the end of the chain
		if all := many.Unwrap(); len(all) > 0 {
			return lastError(all[len(all)-1])
		}
	}
	return err
}

// keys returns the tenants and the ids of runs, for unnest.
func keys(objects []*cold.Object) (tenants, ids []string) {
	for _, o := range objects {
		tenants, ids = append(tenants, o.Run.Tenant), append(ids, o.Run.RunID)
	}
	return tenants, ids
}
