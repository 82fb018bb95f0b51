package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/services/eventlog/store"
)

// keptAside is the number of unused generations that stay in the database.
const keptAside = 1

// Rebuild creates a new generation, unless the store has moved since this replica checked; see
// store.Writer.
func (s *Store) Rebuild(ctx context.Context) error {
	s.setup.Lock()
	defer s.setup.Unlock()
	if s.closed.Load() {
		return errClosed
	}
	g := s.gen.Load()
	if g == nil || g.moved.Load() {
		fresh, err := s.adoptLocked(ctx)
		if err == nil { // another replica has created one
			return nil
		}
		if !errors.Is(err, store.ErrDamaged) {
			return fmt.Errorf("rebuild: %w", err)
		}
		g = fresh
	}
	ddl, cancel := context.WithTimeout(ctx, ddlTimeout)
	defer cancel()
	var c control
	err := s.twice(ddl, func() (err error) {
		c, err = s.exclusively(ddl, func(ctx context.Context, tx pgx.Tx) (control, error) { return s.supersede(ctx, tx, g) })
		return err
	})
	if err != nil {
		return fmt.Errorf("rebuild: %w", s.scrub(err))
	}
	s.use(c.generation)
	s.sweep(ctx, c.generation)
	return nil
}

// supersede renames the generation in use and creates the next one; nil means the generation was
// unreadable. It does nothing if another replica has done so.
func (s *Store) supersede(ctx context.Context, tx pgx.Tx, known *generation) (control, error) {
	c, err := s.prepare(ctx, tx)
	switch {
	case err == nil && known != nil && c.generation != known.id:
		return c, nil
	case errors.Is(err, store.ErrDamaged): // the control row itself; its content can be restored
		if err := script(ctx, tx, `DROP TABLE `+s.cfg.controlTable()); err != nil {
			return c, err
		}
		return s.prepare(ctx, tx)
	case err != nil:
		return c, err
	}
	if err := s.aside(ctx, tx, c.generation); err != nil {
		return c, err
	}
	return s.begin(ctx, tx, c.generation)
}

// aside renames a generation without waiting: running reads finish, and the next statement that
// refers to it fails.
func (s *Store) aside(ctx context.Context, tx pgx.Tx, id int64) error {
	var there bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, s.cfg.generationSchema(id)).Scan(&there)
	if err != nil || !there {
		return err
	}
	s.log.Warn("read model put aside", "schema", s.cfg.asideSchema(id))
	return script(ctx, tx, fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s", s.cfg.generationSchema(id), s.cfg.asideSchema(id)))
}

// sweep removes old generations, so that they do not fill the disk. If that fails, for example
// because of a running read, work continues.
func (s *Store) sweep(ctx context.Context, current int64) {
	names, err := s.old(ctx, current)
	for _, name := range names[:max(0, len(names)-keptAside)] {
		if _, derr := s.writer.Exec(ctx, `DROP SCHEMA IF EXISTS `+name+` CASCADE`); derr != nil {
			err = errors.Join(err, derr)
		}
	}
	if err != nil {
		s.log.Warn("remove old read models", "error", s.scrub(err))
	}
}

// old returns the schemas of generations before the current one, the oldest first.
func (s *Store) old(ctx context.Context, current int64) ([]string, error) {
	rows, err := s.writer.Query(ctx, `SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname::text, $1)`, s.cfg.Schema+"_")
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	pattern := regexp.MustCompile(`^` + s.cfg.Schema + `_(?:g|aside_)([0-9]+)$`)
	began := map[string]int64{}
	for _, name := range names {
		if m := pattern.FindStringSubmatch(name); m != nil {
			began[name], _ = strconv.ParseInt(m[1], 10, 64) // 0 for what is no generation
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return began[name] == 0 || began[name] >= current })
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(began[a], began[b]) })
	return names, nil
}
