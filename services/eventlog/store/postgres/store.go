package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill.dev/waybill/services/eventlog/store"
)

// Store is a store.Store in a database. It is safe for concurrent use, also by several processes on
// the same database.
type Store struct {
	cfg Config
	log *slog.Logger
	// The writer has its own connection: if it had to wait, the read model would fall behind and
	// all readers would wait.
	writer, readers *pgxpool.Pool

	gen     atomic.Pointer[generation] // nil means the database was never reached
	setup   sync.Mutex                 // held while the generation is looked up or replaced
	closed  atomic.Bool
	keeping sync.Mutex               // held while secrets is replaced
	secrets atomic.Pointer[[]string] // must not appear in errors
}

var _ store.Store = (*Store)(nil)

// Open creates a store, and the tables if there are none. An unreachable database, or one that
// refuses the login, is not an error: each Tail retries, and until then calls return the cause.
// Errors are those that retrying cannot fix: an invalid configuration, a database of a later
// release, and a pooler that shares connections between transactions.
func Open(ctx context.Context, cfg Config) (store.Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Store{cfg: cfg, log: cfg.Logger}
	s.secrets.Store(&[]string{})
	var err error
	if s.writer, err = s.pool(ctx, 1); err != nil {
		return nil, err
	}
	if s.readers, err = s.pool(ctx, cfg.MaxConns-1); err != nil {
		s.writer.Close()
		return nil, err
	}
	first, cancel := s.bounded(ctx)
	defer cancel()
	switch _, err := s.adopt(first); {
	case err == nil:
	case errors.Is(err, errNewer), errors.Is(err, errEncoding), errors.Is(err, errPooled), ctx.Err() != nil:
		return nil, errors.Join(err, s.Close())
	default:
		s.log.Warn("read model's database is unusable; trying again", "error", err)
	}
	return s, nil
}

// pool creates a pool; it connects on demand.
func (s *Store) pool(ctx context.Context, conns int) (*pgxpool.Pool, error) {
	pc, err := s.cfg.parse()
	if err != nil {
		return nil, err
	}
	s.keep(pc)
	pc.MaxConns, pc.MinConns, pc.MinIdleConns = int32(conns), 0, 0 //nolint:gosec // G115: a number of connections
	pc.BeforeConnect = s.beforeConnect
	pc.AfterConnect = s.afterConnect
	p, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), pc)
	return p, s.scrub(err)
}

// keep records the password, plain and URL-encoded.
func (s *Store) keep(pc *pgxpool.Config) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	if p := pc.ConnConfig.Password; p != "" {
		secrets := append(slices.Clone(*s.secrets.Load()), p, url.QueryEscape(p), url.PathEscape(p))
		slices.Sort(secrets)
		secrets = slices.Compact(secrets)
		s.secrets.Store(&secrets)
	}
}

// beforeConnect reads user and password from the file, in case they have changed.
func (s *Store) beforeConnect(_ context.Context, cc *pgx.ConnConfig) error {
	if s.cfg.URLFile == "" {
		return nil
	}
	fresh, err := s.cfg.parse()
	if err != nil {
		return err
	}
	if fresh.ConnConfig.Password != cc.Password {
		s.keep(fresh)
	}
	cc.User, cc.Password = fresh.ConnConfig.User, fresh.ConnConfig.Password
	return nil
}

// afterConnect prepares the session and checks whether the tail has gone back. After a crash or
// failover all connections are new, so nothing is read from the server before this check.
func (s *Store) afterConnect(ctx context.Context, conn *pgx.Conn) error {
	ms := s.cfg.StatementTimeout.Milliseconds()
	settings := fmt.Sprintf(`SET synchronous_commit = off; SET statement_timeout = %d; SET lock_timeout = %d;
		SET idle_in_transaction_session_timeout = %d`, ms, ms, ms)
	if _, err := conn.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	g := s.gen.Load()
	if g == nil {
		return nil
	}
	reached, pos := g.reached.Load(), uint64(0)
	err := conn.QueryRow(ctx, g.sql.position, pgx.QueryExecModeExec).Scan(&pos)
	switch {
	case err != nil && lost(err):
		return err
	case err == nil && pos < reached:
		g.moved.Store(true)
		s.log.Warn("read model's database lost its last batches; applying them again", "had", reached, "has", pos)
	}
	return nil // statements report other errors
}

// Close ends the connections. It is safe to call twice.
func (s *Store) Close() error {
	if !s.closed.Swap(true) {
		s.readers.Close()
		s.writer.Close()
	}
	return nil
}

// current returns the generation in use.
func (s *Store) current() (*generation, error) {
	g := s.gen.Load()
	switch {
	case s.closed.Load():
		return nil, errClosed
	case g == nil:
		return nil, errNotReady
	case g.moved.Load():
		return nil, fmt.Errorf("%w: this replica has not caught up with that yet", store.ErrMoved)
	default:
		return g, nil
	}
}

// bounded returns a context that ends when no answer can be expected: the server limits its
// statements itself, but may have vanished.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.StatementTimeout+s.cfg.ConnectTimeout)
}

// read runs a query on the tables of the current generation. A restart of the server leaves dead
// connections, so a query that lost its connection is retried once on a new one.
func (s *Store) read(ctx context.Context, pool *pgxpool.Pool, query func(ctx context.Context, g *generation) error) error {
	for again := false; ; again = true {
		g, err := s.current()
		if err != nil {
			return err
		}
		bounded, cancel := s.bounded(ctx)
		err = query(bounded, g)
		cancel()
		if err == nil && g.moved.Load() { // the new connection found a change
			_, err = s.current()
			return err
		}
		if again || ctx.Err() != nil || !lost(err) || errors.Is(err, context.DeadlineExceeded) {
			return s.verdict(ctx, g, err)
		}
		pool.Reset()
	}
}

// ddlTimeout limits a change of the schema, migrationTimeout one that builds indexes over all rows.
const (
	ddlTimeout       = 5 * time.Minute
	migrationTimeout = time.Hour
)
