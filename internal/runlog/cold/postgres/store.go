// Package postgres is a cold store in a PostgreSQL database that the services of a host share.
//
// The database has the index: the runs, their blocks and the hashes. The contents are in the database,
// too, or in batches in a bucket. A batch is one object with the runs of one Put, each encrypted with a
// key of its own, which the index has. To delete a run is to delete its key; the batch is removed with its
// last run. So a bucket costs one request for a hundred runs, and is never written again.
//
// A commit waits for the disk, whatever the server's default is. Writers take turns, and count their
// transactions: a database that has fewer than a process has seen has lost some, and is not written.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill.dev/waybill/internal/runlog/cold"
)

// schema creates the tables of version 1, schema2 makes them those of version 2.
var (
	//go:embed schema.sql
	schema string
	//go:embed schema2.sql
	schema2 string
)

// schemaVersion is the version of the tables.
const schemaVersion = 2

// ErrBehind means that the database lacks writes that this process has seen: after a failover to a standby
// that was behind, or a restore.
var ErrBehind = fmt.Errorf("%w: the last writes", cold.ErrLacking)

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

	// setup has one place, for the call that prepares the tables; ready: they are there.
	setup chan struct{}
	ready atomic.Bool
	// seen is how many writes the database had at least.
	seen atomic.Int64
	// strange: the contents are in another bucket than that of this process.
	strange atomic.Bool

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
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, name: pgx.Identifier{cfg.Schema}.Sanitize(), setup: make(chan struct{}, 1)}
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
	writes, seen := int64(0), s.seen.Load()
	err := s.begin(ctx, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		// This locks the row. Writers take turns, so that none waits for a lock of another in a circle.
		if err := tx.QueryRow(ctx, `UPDATE totals SET writes = writes + 1 RETURNING writes`).Scan(&writes); err != nil {
			return err
		}
		if err := behind(writes-1, seen); err != nil {
			return err
		}
		return do(ctx, tx)
	})
	if err == nil {
		s.note(writes)
	}
	return err
}

// behind reports a database that has fewer writes than were seen before its answer was requested.
func behind(writes, seen int64) error {
	if writes < seen {
		return fmt.Errorf("%w: it has %d, and had %d", ErrBehind, writes, seen)
	}
	return nil
}

// note notes the number of writes that the database has.
func (s *Store) note(writes int64) {
	for seen := s.seen.Load(); writes > seen && !s.seen.CompareAndSwap(seen, writes); seen = s.seen.Load() {
	}
}

// view calls do in a transaction that reads.
func (s *Store) view(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return s.begin(ctx, pgx.ReadOnly, do)
}

func (s *Store) begin(ctx context.Context, mode pgx.TxAccessMode, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout+connectTimeout) // the server may have vanished
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
// runs that have left the log. A process that vanishes within a transaction would keep all writers waiting
// until the server finds its connection dead, which takes hours.
func (s *Store) settings(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config('search_path', $1, true),
		set_config('statement_timeout', $2, true), set_config('lock_timeout', $2, true), set_config('idle_in_transaction_session_timeout', $2, true),
		set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, true)`,
		s.name, strconv.FormatInt(s.cfg.Timeout.Milliseconds(), 10))
	return err
}

// setupLock is the key of the advisory lock of processes that create tables.
const setupLock = 0x77617962696c6c

// prepare creates the tables, and checks their version.
func (s *Store) prepare(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	select {
	case s.setup <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.setup }()
	if s.ready.Load() {
		return nil
	}
	var in *string
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if err := s.settings(ctx, tx); err != nil {
			return err
		}
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
		if version < schemaVersion {
			if _, err := tx.Exec(ctx, schema2, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, `SELECT bucket FROM `+s.name+`.totals`).Scan(&in)
	})
	if err == nil {
		s.ready.Store(true)
		_ = s.mine(in) // it logs an error; what does not need the bucket works
	}
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
	_, err := tx.Exec(ctx, schema+schema2, pgx.QueryExecModeSimpleProtocol)
	return err
}

// keys returns the tenants and the ids of runs, for unnest.
func keys(objects []*cold.Object) (tenants, ids []string) {
	for _, o := range objects {
		tenants, ids = append(tenants, o.Run.Tenant), append(ids, o.Run.RunID)
	}
	return tenants, ids
}
