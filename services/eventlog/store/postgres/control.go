package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

//go:embed migrations/*.sql
var migrations embed.FS

// control is the row that names the tables in use.
type control struct {
	version    int
	generation int64
}

// errNoControl: the database is new, or has lost the control row.
var errNoControl = errors.New("no control row")

// querier is the common interface of pools and transactions.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readControl reads the control row. Errors: errNoControl, errNewer, store.ErrDamaged.
func (s *Store) readControl(ctx context.Context, db querier) (control, error) {
	var c control
	err := db.QueryRow(ctx, `SELECT version, generation FROM `+s.cfg.controlTable()+` WHERE id = 1`).Scan(&c.version, &c.generation)
	switch known := len(steps()); {
	case errors.Is(err, pgx.ErrNoRows), code(err) == "3F000", code(err) == "42P01":
		return c, errNoControl
	case unreadable(err), slices.Contains(misfit, code(err)):
		return c, fmt.Errorf("%w: control row: %w", store.ErrDamaged, err)
	case err != nil:
		return c, err
	case c.version > known:
		return c, fmt.Errorf("%w: its schema %s has version %d, this program knows %d; upgrade this replica, or give it a schema of its own",
			errNewer, s.cfg.Schema, c.version, known)
	case c.version < 0:
		return c, fmt.Errorf("%w: schema version %d", store.ErrDamaged, c.version)
	}
	return c, nil
}

// adopt finds the generation in use, creates the first one if there is none, and migrates its
// tables.
func (s *Store) adopt(ctx context.Context) (*generation, error) {
	s.setup.Lock()
	defer s.setup.Unlock()
	return s.adoptLocked(ctx)
}

func (s *Store) adoptLocked(ctx context.Context) (*generation, error) {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := s.checkPooler(ctx); err != nil {
		return nil, s.scrub(err)
	}
	var c control
	err := s.twice(ctx, func() (err error) {
		c, err = s.readControl(ctx, s.writer)
		return err
	})
	if err == nil && c.version < len(steps()) || errors.Is(err, errNoControl) {
		c, err = s.exclusively(ctx, s.prepare)
	}
	if err != nil {
		return nil, s.scrub(err)
	}
	return s.use(c.generation), nil
}

// twice runs a repeatable step, and once more on a new connection if the writer's was lost.
func (s *Store) twice(ctx context.Context, step func() error) error {
	err := step()
	if lost(err) && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		s.writer.Reset()
		err = step()
	}
	return err
}

// use starts to work on a generation.
func (s *Store) use(id int64) *generation {
	g := &generation{id: id, sql: s.cfg.statements(id)}
	s.gen.Store(g)
	return g
}

// exclusively runs a change of the schema, one replica at a time, with a synchronous commit.
func (s *Store) exclusively(ctx context.Context, change func(ctx context.Context, tx pgx.Tx) (control, error)) (control, error) {
	var c control
	err := pgx.BeginFunc(ctx, s.writer, func(tx pgx.Tx) error {
		begin := `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL synchronous_commit = on;
			SET LOCAL idle_in_transaction_session_timeout = 0`
		if err := script(ctx, tx, begin); err != nil {
			return err
		}
		key := fnv.New64a()
		_, _ = key.Write([]byte("waybill read model " + s.cfg.Schema))
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(key.Sum64())); err != nil { //nolint:gosec // G115: any number will do
			return err
		}
		var err error
		c, err = change(ctx, tx)
		return err
	})
	return c, err
}

// prepare creates the missing parts of schema, control row and tables.
func (s *Store) prepare(ctx context.Context, tx pgx.Tx) (control, error) {
	var encoding string
	if err := tx.QueryRow(ctx, `SELECT current_setting('server_encoding')`).Scan(&encoding); err != nil {
		return control{}, err
	}
	if encoding != "UTF8" {
		return control{}, fmt.Errorf("%w, it has %s", errEncoding, encoding)
	}
	create := fmt.Sprintf(`CREATE SCHEMA IF NOT EXISTS %s; CREATE TABLE IF NOT EXISTS %s (
		id smallint PRIMARY KEY CHECK (id = 1), version integer NOT NULL, generation bigint NOT NULL)`, s.cfg.Schema, s.cfg.controlTable())
	if err := script(ctx, tx, create); err != nil {
		return control{}, err
	}
	var c control
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) { // a part that may fail
		c, err = s.readControl(ctx, tx)
		return err
	})
	switch {
	case errors.Is(err, errNoControl):
		return s.begin(ctx, tx, 0)
	case err != nil || c.version == len(steps()): // another replica was first
		return c, err
	}
	if err := s.migrate(ctx, tx, c.generation, c.version); err != nil {
		return c, err
	}
	c.version = len(steps())
	_, err = tx.Exec(ctx, `UPDATE `+s.cfg.controlTable()+` SET version = $1`, c.version)
	return c, err
}

// begin creates the tables of a new generation and records it in the control row.
func (s *Store) begin(ctx context.Context, tx pgx.Tx, after int64) (control, error) {
	c := control{version: len(steps())}
	err := tx.QueryRow(ctx, `SELECT greatest($1::bigint + 1, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`, after).Scan(&c.generation)
	if err != nil {
		return c, err
	}
	schema := s.cfg.generationSchema(c.generation)
	if err := script(ctx, tx, `CREATE SCHEMA `+schema); err != nil {
		return c, err
	}
	if err := s.migrate(ctx, tx, c.generation, 0); err != nil {
		return c, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO `+schema+`.tail (id, pos, hash, sum) VALUES (1, 0, '', $1)`, int64(row.SumTail(store.Tail{})))
	if err != nil {
		return c, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO `+s.cfg.controlTable()+` (id, version, generation) VALUES (1, $1, $2)
		ON CONFLICT (id) DO UPDATE SET version = excluded.version, generation = excluded.generation`, c.version, c.generation)
	return c, err
}

// migrate migrates the tables of a generation, step by step.
func (s *Store) migrate(ctx context.Context, tx pgx.Tx, generation int64, version int) error {
	path := fmt.Sprintf("SET LOCAL search_path = %s, %s", s.cfg.generationSchema(generation), s.cfg.Schema)
	if err := script(ctx, tx, path); err != nil {
		return err
	}
	for _, name := range steps()[version:] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := script(ctx, tx, string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}

// steps returns the migrations in order.
func steps() []string {
	names, _ := fs.Glob(migrations, "migrations/*.sql") // the pattern is well-formed
	return names
}

// script runs statements without arguments.
func script(ctx context.Context, tx pgx.Tx, text string) error {
	_, err := tx.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
	return err
}
