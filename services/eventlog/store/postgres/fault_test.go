package postgres_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
)

// batch is a run of some events that ends at a position.
func batch(pos uint64, events int) store.Batch {
	r := store.Run{
		Key:        store.Key{Tenant: "acme", RunID: fmt.Sprintf("01JRUN%020d", pos)},
		WorkflowID: "order-fulfilment",
		Status:     wire.StatusRunning,
		CreatedAt:  "2026-03-01T12:00:00.000Z",
		StartedAt:  "2026-03-01T12:00:00.001Z",
		Tags:       []string{"nightly", "team:search"},
		Head:       events - 1,
		Pos:        pos,
		New:        true,
		Hash:       "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		DueMs:      1772366400000,
	}
	b := store.Batch{Runs: []store.Run{r}, Tail: store.Tail{Pos: pos, Hash: r.Hash}}
	b.Frames = append(b.Frames, store.Frame{
		Key:   r.Key,
		First: store.RecordFirst,
		Last:  store.RecordFirst,
		Body:  []byte(`{"runId":"r"}`),
	})
	for i := range events {
		b.Frames = append(b.Frames, store.Frame{
			Key:   r.Key,
			First: i,
			Last:  i,
			Types: []wire.EventType{wire.EventLogAppended},
			Body:  fmt.Appendf(nil, `[{"sequence":%d}]`, i),
		})
	}
	return b
}

func count(t testing.TB, cfg postgres.Config, query string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), cfg.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestOpen_OfManyReplicasAtOnceMakesOneSchema(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	const replicas = 8
	var wg sync.WaitGroup
	for range replicas {
		wg.Go(func() {
			s, err := postgres.Open(context.Background(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Apply(context.Background(), batch(12, 3)); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, count(t, cfg, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE '"+cfg.Schema+"\\_g%'"))
	frames, err := open(t, cfg).Frames(t.Context(), batch(12, 3).Runs[0].Key, store.RecordFirst, 100)
	require.NoError(t, err)
	require.Len(t, frames, 4)
}

// migrations returns the number of migrations.
func migrations(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	require.NoError(t, err)
	return len(files)
}

func TestOpen_RefusesALaterSchema(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
	execute(t, cfg, "UPDATE {schema}.control SET version = 99")
	_, err := postgres.Open(t.Context(), cfg)
	require.ErrorContains(t, err, fmt.Sprintf("version 99, this program knows %d", migrations(t)))

	// A replica older than the upgrade stops writing and does not change what it does not
	// understand.
	for _, err := range []error{s.Apply(t.Context(), batch(14, 3)), s.Rebuild(t.Context())} {
		require.ErrorContains(t, err, "later release")
		require.NotErrorIs(t, err, store.ErrDamaged)
	}
	execute(t, cfg, "UPDATE {schema}.control SET version = 1")
	_, err = s.Run(t.Context(), batch(12, 3).Runs[0].Key)
	require.NoError(t, err)
}

func TestOpen_RefusesADatabaseThatCannotHoldAllText(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	execute(t, cfg, "CREATE DATABASE {schema}_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	cfg.URL += "&dbname=" + cfg.Schema + "_latin"
	_, err := postgres.Open(t.Context(), cfg)
	require.ErrorContains(t, err, "encoding UTF8, it has LATIN1")
}

func TestRebuild_FromAnyDamage(t *testing.T) {
	t.Parallel()
	key := batch(12, 3).Runs[0].Key
	for name, damage := range map[string]string{
		"row":               `UPDATE {tables}.runs SET head = head + 1`,
		"status":            `UPDATE {tables}.runs SET status = 'completed'`,
		"frame":             `UPDATE {tables}.frames SET body = '[]' WHERE first = 1`,
		"lost frames":       `DROP TABLE {tables}.frames`,
		"tail":              `UPDATE {tables}.tail SET pos = 99`,
		"lost tail":         `DELETE FROM {tables}.tail`,
		"lost column":       `ALTER TABLE {tables}.runs DROP COLUMN hash`,
		"other column":      `ALTER TABLE {tables}.runs ALTER head TYPE text`,
		"lost tables":       `DROP SCHEMA {tables} CASCADE`,
		"lost control row":  `DELETE FROM {schema}.control`,
		"lost control":      `DROP TABLE {schema}.control`,
		"other control":     `ALTER TABLE {schema}.control DROP COLUMN generation`,
		"lost schema":       `DROP SCHEMA {schema} CASCADE`,
		"lost everything":   `DROP SCHEMA {schema} CASCADE; DROP SCHEMA {tables} CASCADE`,
		"a version of none": `UPDATE {schema}.control SET version = -1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			s, other := open(t, cfg), open(t, cfg)
			require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
			_, err := other.Tail(t.Context())
			require.NoError(t, err)
			execute(t, cfg, damage)
			require.ErrorIs(t, use(t, s, key), store.ErrDamaged)
			require.NoError(t, s.Rebuild(t.Context()))
			require.NoError(t, s.Apply(t.Context(), batch(11, 2)))
			require.NoError(t, use(t, s, batch(11, 2).Runs[0].Key))
			_, err = s.Run(t.Context(), key)
			require.ErrorIs(t, err, store.ErrNotFound)

			require.ErrorIs(t, use(t, other, key), store.ErrMoved, "the other replica learns of it")
			require.NoError(t, other.Rebuild(t.Context()))
			require.NoError(t, use(t, other, batch(11, 2).Runs[0].Key))
		})
	}
}

// use calls the store as a service does, and returns the first error.
func use(t *testing.T, s store.Store, key store.Key) error {
	t.Helper()
	if _, err := s.Tail(t.Context()); err != nil {
		return err
	}
	if _, err := s.Run(t.Context(), key); err != nil {
		return err
	}
	_, err := s.Frames(t.Context(), key, store.RecordFirst, 100)
	return err
}

func TestRebuild_KeepsTheLastOneAsideAndWaitsForNoReader(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
	conn, err := pgx.Connect(t.Context(), cfg.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	for range 3 {
		var generation int64
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT generation FROM "+cfg.Schema+".control").Scan(&generation))
		_, err := conn.Exec(t.Context(), fmt.Sprintf("BEGIN; LOCK TABLE %s_g%d.frames IN ACCESS SHARE MODE", cfg.Schema, generation))
		require.NoError(t, err)
		require.NoError(t, s.Rebuild(t.Context()))
		require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
		var kept int
		require.NoError(t, conn.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM %s_aside_%d.runs", cfg.Schema, generation)).Scan(&kept))
		require.Equal(t, 1, kept)
		_, err = conn.Exec(t.Context(), "COMMIT")
		require.NoError(t, err)
	}
	require.Equal(t, 1, count(t, cfg, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE '"+cfg.Schema+"\\_aside%'"))
}

// A reader during another replica's rebuild gets an error, or the whole run.
func TestRebuild_RunsConcurrentlyWithReaders(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	b := batch(12, 20)
	key := b.Runs[0].Key
	require.NoError(t, s.Apply(t.Context(), b))
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for range 3 {
		reader := open(t, cfg)
		reading.Go(func() {
			for ctx.Err() == nil {
				err := readsWhole(ctx, reader, key)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 10 {
		require.NoError(t, s.Rebuild(t.Context()))
		require.NoError(t, s.Apply(t.Context(), b))
	}
	stop()
	reading.Wait()
}

// readsWhole follows a store that is emptied and filled again and again.
func readsWhole(ctx context.Context, s store.Store, key store.Key) error {
	row, err := s.Run(ctx, key)
	var frames []store.Frame
	if err == nil {
		frames, err = s.Frames(ctx, key, 0, 100)
	}
	switch {
	case err == nil && len(frames) != row.Head+1:
		return fmt.Errorf("%d frames of %d", len(frames), row.Head+1)
	case err == nil:
		return nil
	case isMoved(err):
		return s.Rebuild(ctx)
	case isNotFound(err):
		return nil // it is being filled
	}
	return err
}

func TestApply_FailsAsAWhole(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	b := batch(12, 3)
	b.Frames[2].Body = nil // the schema refuses it
	require.Error(t, s.Apply(t.Context(), b))
	_, err := s.Run(t.Context(), b.Runs[0].Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Apply(ctx, batch(14, 3)), context.Canceled)
}

func TestApply_OfAnotherLogIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
	b := batch(12, 3)
	b.Tail.Hash = "another"
	require.ErrorIs(t, s.Apply(t.Context(), b), store.ErrDamaged)
}

func TestApply_TakesALargeBatch(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	b := batch(12, 10_000)
	require.NoError(t, s.Apply(t.Context(), b))
	frames, err := s.Frames(t.Context(), b.Runs[0].Key, store.RecordFirst, 1<<30)
	require.NoError(t, err)
	require.Equal(t, b.Frames, frames)
}

// A replica stopped in the middle of a batch delays the others up to the statement timeout.
func TestApply_WaitsForAnotherReplicaWithinBounds(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.StatementTimeout = 200 * time.Millisecond
	s := open(t, cfg)
	conn, err := pgx.Connect(t.Context(), cfg.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var generation int64
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT generation FROM "+cfg.Schema+".control").Scan(&generation))
	_, err = conn.Exec(t.Context(), fmt.Sprintf("BEGIN; SELECT FROM %s_g%d.tail FOR UPDATE", cfg.Schema, generation))
	require.NoError(t, err)
	err = s.Apply(t.Context(), batch(12, 3))
	require.ErrorContains(t, err, "timeout")
	require.NotErrorIs(t, err, store.ErrDamaged)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Apply(ctx, batch(12, 3)), context.DeadlineExceeded, "the caller's own limit is returned as such")
	_, err = s.Tail(t.Context())
	require.NoError(t, err, "readers do not wait")
	_, err = conn.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
}

func TestClosedStore_Answers(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Run(t.Context(), store.Key{Tenant: "acme", RunID: "r"})
	require.ErrorContains(t, err, "closed")
	require.ErrorContains(t, s.Rebuild(t.Context()), "closed")
	require.NotErrorIs(t, err, store.ErrDamaged)
}

// folder is one for a socket, whose name must be short.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "waybill-pg-") //nolint:usetesting // TempDir gives a long name
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// A database that is not there yet is waited for.
func TestOpen_WithoutADatabaseWaitsForIt(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	cfg := config(t)
	cfg.URL = postgrestest.URL(dir)
	s := open(t, cfg)
	_, err := s.Tail(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrDamaged)
	require.NotContains(t, err.Error(), postgrestest.Password)
	_, err = s.Run(t.Context(), store.Key{Tenant: "acme", RunID: "r"})
	require.ErrorContains(t, err, "not been reached yet")
	require.NotErrorIs(t, err, store.ErrNotFound)

	const socket = ".s.PGSQL.5432"
	require.NoError(t, os.Symlink(filepath.Join(server(t).Dir(), socket), filepath.Join(dir, socket)))
	_, err = s.Tail(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
}

// A server that accepts connections and never answers is like one behind a broken network.
func TestOpen_OfASilentServerEnds(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	silent, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	s := open(t, postgres.Config{
		URL:              postgrestest.URL(dir),
		ConnectTimeout:   100 * time.Millisecond,
		StatementTimeout: 100 * time.Millisecond,
	})
	_, err = s.Tail(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "it is none of the caller's")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Tail(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// Several replicas of a new release start at the same time, next to one of the old release.
func TestOpen_OfManyReplicasAtOnceMigratesOnce(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	require.NoError(t, open(t, cfg).Apply(t.Context(), batch(12, 3)))
	// A layout before the first one: no tables but the tail.
	execute(t, cfg, `ALTER TABLE {tables}.tail RENAME TO kept; DROP TABLE {tables}.runs, {tables}.tags, {tables}.frames, {tables}.marks, {tables}.substitutions, {tables}.tallies, {tables}.texts;
		UPDATE {schema}.control SET version = 0`)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := postgres.Open(context.Background(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, migrations(t), count(t, cfg, "SELECT version FROM "+cfg.Schema+".control"))
	execute(t, cfg, `INSERT INTO {tables}.tail SELECT * FROM {tables}.kept`)
	tail, err := open(t, cfg).Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(12), tail.Pos, "existing rows remain")
}

// withoutFacts takes back what the latest migration added, withoutOwners also the one before.
const (
	withoutFacts = `DROP TABLE {tables}.texts, {tables}.tallies; ALTER TABLE {tables}.runs DROP COLUMN facts, DROP COLUMN model, DROP COLUMN last_node, DROP COLUMN tokens_in, DROP COLUMN tokens_out, DROP COLUMN tokens,
		DROP COLUMN cost, DROP COLUMN duration_ms, DROP COLUMN waiting_since, DROP COLUMN inputs;`
	withoutOwners = withoutFacts + `ALTER TABLE {tables}.runs DROP COLUMN owner, DROP COLUMN owner_epoch, DROP COLUMN owned_since;`
)

// Tables without facts are migrated, and their rows are filled without their frames being read again
// from the log.
func TestOpen_KeepsRunsFromBeforeFacts(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	require.NoError(t, open(t, cfg).Apply(t.Context(), batch(12, 3)))
	execute(t, cfg, withoutFacts+`UPDATE {schema}.control SET version = 4`)
	s := open(t, cfg)
	rows, err := s.WithoutFacts(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	rows[0].Facts = store.Facts{Known: true, Model: "m"}
	require.NoError(t, s.FillFacts(t.Context(), rows, nil))
	got, err := s.Run(t.Context(), rows[0].Key)
	require.NoError(t, err)
	require.Equal(t, rows[0], got)
}

// Tables without owners are migrated, and their runs get owners with the next frame.
func TestOpen_KeepsRunsFromBeforeOwners(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	require.NoError(t, open(t, cfg).Apply(t.Context(), batch(12, 3)))
	execute(t, cfg, withoutOwners+`UPDATE {schema}.control SET version = 3`)
	s := open(t, cfg)
	r := batch(12, 3).Runs[0]
	got, err := s.Run(t.Context(), r.Key)
	require.NoError(t, err)
	require.Empty(t, got.Owner)
	got.Pos, got.Owner = 14, store.Owner{Process: "d1", Epoch: 1}
	require.NoError(t, s.Apply(t.Context(), store.Batch{Runs: []store.Run{got}, Tail: store.Tail{Pos: 14, Hash: "h"}}))
	owned, err := s.Owned(t.Context(), "d1", store.Key{}, 10)
	require.NoError(t, err)
	require.Len(t, owned, 1)
}

// Tables without marks are migrated, and continue at their position.
func TestOpen_KeepsRunsFromBeforeMarks(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	require.NoError(t, open(t, cfg).Apply(t.Context(), batch(12, 3)))
	execute(t, cfg, withoutOwners+`DROP TABLE {tables}.marks, {tables}.substitutions; UPDATE {schema}.control SET version = 2`)
	s := open(t, cfg)
	tail, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(12), tail.Pos)
	_, err = s.Run(t.Context(), batch(12, 3).Runs[0].Key)
	require.NoError(t, err)
}
