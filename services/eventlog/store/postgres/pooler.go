package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errPooled: a pooler gives each transaction another connection to the server. Then settings of a
// session and prepared statements get lost, or reach other clients, and the store would not notice
// that a restarted server has lost its last batches (see afterConnect).
var errPooled = errors.New("the database is behind a connection pooler that shares the server's connections between transactions; " +
	"the read model needs connections of its own: set pool_mode = session for it, or name the server instead of the pooler")

// poolerRounds limits how often a pooler is tried. One that serves other clients can return
// different connections by chance.
const poolerRounds = 3

// checkPooler returns errPooled if the connections of the URL are shared between transactions. It
// uses no setting of the session, so that none reaches another client.
func (s *Store) checkPooler(ctx context.Context) error {
	first, err := s.connectBare(ctx)
	if err != nil {
		return err
	}
	defer closeBare(ctx, first)
	server, err := backend(ctx, first)
	if err != nil || server == first.PgConn().PID() {
		return err // nothing is in between
	}
	second, err := s.connectBare(ctx)
	if err != nil {
		return err
	}
	defer closeBare(ctx, second)
	for range poolerRounds {
		shared, err := shareBackend(ctx, first, second)
		if err != nil {
			return err
		}
		if shared {
			return errPooled
		}
	}
	return nil
}

// shareBackend reports whether two connections were served by one process of the server while both
// were open, or one of them by two.
func shareBackend(ctx context.Context, first, second *pgx.Conn) (bool, error) {
	before, err := backend(ctx, first)
	if err != nil {
		return false, err
	}
	next, err := backend(ctx, first) // of a pooler that takes its connections in turn
	if err != nil || next != before {
		return next != before, err
	}
	if _, err := simple(ctx, second, "BEGIN"); err != nil {
		if strings.HasPrefix(code(err), "08P") { // pool_mode = statement refuses transactions
			return true, nil
		}
		return false, err
	}
	other, err := backend(ctx, second)
	if err != nil || other == before {
		return other == before, err
	}
	after, err := backend(ctx, first) // a pooler cannot use the connection that is in a transaction
	if err != nil {
		return false, err
	}
	_, err = simple(ctx, second, "ROLLBACK")
	return after != before, err
}

// backend returns the id of the server's process behind a connection.
func backend(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	text, err := simple(ctx, conn, "SELECT pg_backend_pid()")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(text, 10, 32)
	return uint32(pid), err
}

// simple runs a statement without preparing it, in a database of any encoding. It returns the value
// of the first row.
func simple(ctx context.Context, conn *pgx.Conn, statement string) (string, error) {
	results, err := conn.PgConn().Exec(ctx, statement).ReadAll()
	if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}

// connectBare opens a connection without the settings of a session.
func (s *Store) connectBare(ctx context.Context) (*pgx.Conn, error) {
	pc, err := s.cfg.parse()
	if err != nil {
		return nil, err
	}
	s.keep(pc)
	conn, err := pgx.ConnectConfig(ctx, pc.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

func closeBare(ctx context.Context, conn *pgx.Conn) {
	_ = conn.Close(context.WithoutCancel(ctx)) // it has done its work
}
