package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"waybill.dev/waybill/services/eventlog/store"
)

// Codes of errors: https://www.postgresql.org/docs/current/errcodes-appendix.html.
var (
	// corrupt: the server detected that stored data is corrupt.
	corrupt = []string{"XX001", "XX002"}
	// misfit: a statement does not fit the tables. Our statements fit our tables, so these are
	// other tables, or ours are gone.
	misfit = []string{"3F000", "42P01", "42703", "42804", "42883", "42P10"}
)

const (
	readOnly      = "25006" // the server has become a standby
	classShutdown = "57P"   // the server is stopping or starting
	classLost     = "08"    // the connection is lost
)

var (
	errClosed   = errors.New("postgres store is closed")
	errNotReady = errors.New("postgres store: the database has not been reached yet")
	errNewer    = errors.New("the database holds the read model of a later release")
	errEncoding = errors.New("the database must have the encoding UTF8")
)

// code returns the server's code of an error; empty if not an error of the server.
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// unreadable reports whether a value does not fit its column.
func unreadable(err error) bool {
	_, ok := errors.AsType[pgx.ScanArgError](err)
	return ok
}

// lost reports whether the connection failed, not the statement.
func lost(err error) bool {
	if err == nil || errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) || unreadable(err) {
		return false
	}
	c := code(err)
	return c == "" || c == readOnly || strings.HasPrefix(c, classLost) || strings.HasPrefix(c, classShutdown)
}

// verdict classifies an error of a generation's tables: the store is damaged or has moved, the
// caller has given up, or the database is unavailable.
func (s *Store) verdict(ctx context.Context, g *generation, err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrMoved):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case slices.Contains(misfit, code(err)):
		return s.missing(ctx, g, err)
	case errors.Is(err, store.ErrDamaged), slices.Contains(corrupt, code(err)), unreadable(err):
		if g.moved.Load() || s.gen.Load() != g {
			return fmt.Errorf("%w: %w", store.ErrMoved, s.scrub(err))
		}
		if !errors.Is(err, store.ErrDamaged) {
			err = fmt.Errorf("%w: %w", store.ErrDamaged, s.scrub(err))
		}
		return err
	default:
		return s.scrub(err)
	}
}

// missing finds out why the generation's tables are gone: another replica has created the next
// generation, or someone removed them.
func (s *Store) missing(ctx context.Context, g *generation, cause error) error {
	c, err := s.readControl(ctx, s.writer)
	if err != nil && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, errNoControl) {
		return s.scrub(err)
	}
	if err == nil && c.generation != g.id {
		g.moved.Store(true)
		return fmt.Errorf("%w: another replica has rebuilt it", store.ErrMoved)
	}
	return fmt.Errorf("%w: %w", store.ErrDamaged, s.scrub(cause))
}

// scrub removes the password from an error, in case the driver or the server quoted it. It also
// makes our own deadlines distinguishable from the caller's.
func (s *Store) scrub(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, secret := range *s.secrets.Load() {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	if text != err.Error() || errors.Is(err, context.DeadlineExceeded) {
		return errors.New(text)
	}
	return err
}
