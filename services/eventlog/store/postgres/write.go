package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
	"waybill.dev/waybill/services/eventlog/tally"
)

// Limits of what one statement writes: a batch may have any size.
const (
	chunkRows  = 4096
	chunkBytes = 8 << 20
)

// Tail returns the end of the last batch; see store.Writer. It also connects to a database that was
// never reached.
func (s *Store) Tail(ctx context.Context) (store.Tail, error) {
	if s.gen.Load() == nil && !s.closed.Load() {
		if _, err := s.adopt(ctx); err != nil {
			return store.Tail{}, err
		}
	}
	var t store.Tail
	err := s.read(ctx, s.writer, func(ctx context.Context, g *generation) (err error) {
		if t, err = g.tail(s.writer.QueryRow(ctx, g.sql.tail)); err == nil {
			g.reach(t.Pos)
		}
		return err
	})
	if err != nil {
		return store.Tail{}, fmt.Errorf("read tail: %w", err)
	}
	return t, nil
}

// tail reads the tail of a generation in use, and checks that nothing is lost.
func (g *generation) tail(from pgx.Row) (store.Tail, error) {
	var (
		t   store.Tail
		c   control
		sum int64
	)
	err := from.Scan(&c.generation, &c.version, &t.Pos, &t.Hash, &sum)
	switch known := len(steps()); {
	case errors.Is(err, pgx.ErrNoRows):
		return t, fmt.Errorf("%w: no tail", store.ErrDamaged)
	case err != nil:
		return t, err
	case c.version > known:
		return t, fmt.Errorf("%w: schema version %d, this program knows %d; upgrade this replica", errNewer, c.version, known)
	case c.version < known:
		return t, fmt.Errorf("%w: schema version %d", store.ErrDamaged, c.version)
	case c.generation != g.id:
		g.moved.Store(true)
		return t, fmt.Errorf("%w: another replica has rebuilt it", store.ErrMoved)
	}
	if err := row.SumTail(t).Verify(sum, "tail", store.Key{}); err != nil {
		return t, err
	}
	if reached := g.reached.Load(); t.Pos < reached {
		g.moved.Store(true)
		return t, fmt.Errorf("%w: the database was at %d and is at %d", store.ErrMoved, reached, t.Pos)
	}
	return t, nil
}

// Apply stores a batch in one transaction; see store.Writer. The lock on the tail's row serializes
// replicas, so each finds either nothing or all of a batch.
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := s.current()
	if err != nil {
		return err
	}
	// If the connection was lost, the next attempt finds out whether it was committed.
	err = s.twice(ctx, func() error { return s.apply(ctx, g, b) })
	if len(b.Texts) > 0 && refused(err) {
		b.Texts = withoutWords(b.Texts)
		err = s.twice(ctx, func() error { return s.apply(ctx, g, b) })
	}
	if err != nil {
		return fmt.Errorf("apply batch up to %d: %w", b.Tail.Pos, s.verdict(ctx, g, err))
	}
	g.reach(b.Tail.Pos)
	if len(b.Erased) > 0 {
		s.dropAside(ctx, g.id)
	}
	return nil
}

// apply takes two round trips for a batch of usual size: one to begin and lock the tail, one to
// write and commit.
func (s *Store) apply(ctx context.Context, g *generation, b store.Batch) error {
	waiting, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.writer.Acquire(waiting)
	if err != nil {
		return err
	}
	defer conn.Release() // closes it if a transaction is open, which rolls back
	stored, tallies, err := g.lock(waiting, conn, b.Tallies)
	switch {
	case err != nil:
		return err
	case stored.Pos == b.Tail.Pos && stored.Hash != b.Tail.Hash:
		return fmt.Errorf("%w: it holds another log: its frame at %d is a different one", store.ErrDamaged, stored.Pos)
	case stored.Pos >= b.Tail.Pos: // another replica was faster
		_, err := conn.Exec(waiting, "ROLLBACK")
		return err
	}
	w := writing{store: s, conn: conn, sql: &g.sql}
	w.runs(b.Runs)
	if err := w.frames(ctx, b.Frames); err != nil {
		return err
	}
	w.found(b)
	if err := w.texts(ctx, b.Texts); err != nil {
		return err
	}
	w.tallies(b.Tallies, stored.Pos, tallies)
	for _, key := range b.Sealed {
		w.pending.Queue(w.sql.eraseFrames, encode(key.Tenant), encode(key.RunID))
	}
	w.erase(b.Erased)
	for _, tenant := range b.ErasedTenants() {
		w.pending.Queue(g.sql.eraseTallies, encode(tenant))
	}
	w.pending.Queue(g.sql.putTail, int64(b.Tail.Pos), b.Tail.Hash, int64(row.SumTail(b.Tail))) //nolint:gosec // G115: positions stay far below 2^63
	w.pending.Queue("COMMIT")
	return w.flush(ctx)
}

// lock starts a transaction with a lock on the tail, and reads the tallies that the deltas change.
func (g *generation) lock(
	ctx context.Context, conn *pgxpool.Conn, deltas []tally.Delta,
) (t store.Tail, tallies map[tally.Bucket]*tally.Tally, err error) {
	var begin pgx.Batch
	begin.Queue("BEGIN")
	begin.Queue(g.sql.lock)
	g.queueTallies(&begin, deltas)
	results := conn.SendBatch(ctx, &begin)
	defer func() {
		if cerr := results.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := results.Exec(); err != nil {
		return t, nil, err
	}
	if t, err = g.tail(results.QueryRow()); err != nil {
		return t, nil, err
	}
	tallies, err = readTallies(results, deltas)
	return t, tallies, err
}

// writing sends the statements of a batch in groups.
type writing struct {
	store   *Store
	conn    *pgxpool.Conn
	sql     *statements
	pending pgx.Batch
}

func (w *writing) flush(ctx context.Context) error {
	bounded, cancel := w.store.bounded(ctx)
	defer cancel()
	err := w.conn.SendBatch(bounded, &w.pending).Close()
	w.pending = pgx.Batch{}
	return err
}

// runs queues rows and the tags of new ones.
func (w *writing) runs(runs []store.Run) {
	for chunk := range slices.Chunk(runs, chunkRows) {
		var (
			cols columns
			tags tagColumns
		)
		for i := range chunk {
			cols.add(&chunk[i])
			if chunk[i].New {
				tags.add(&chunk[i])
			}
		}
		w.pending.Queue(w.sql.putRuns, cols.args()...)
		if len(tags.tag) > 0 {
			w.pending.Queue(w.sql.putTags, tags.tenant, tags.tag, tags.createdAt, tags.runID)
		}
	}
}

// found queues the marks and substitutions of a batch.
func (w *writing) found(b store.Batch) {
	for chunk := range slices.Chunk(b.Marks, chunkRows) {
		var cols markColumns
		for i := range chunk {
			cols.add(&chunk[i])
		}
		w.pending.Queue(w.sql.putMarks, cols.tenant, cols.name, cols.value, cols.createdAt, cols.runID)
	}
	for chunk := range slices.Chunk(b.Substitutions, chunkRows) {
		var cols substitutionRows
		for i := range chunk {
			cols.add(&chunk[i])
		}
		w.pending.Queue(w.sql.putSubstitutions, cols.args()...)
	}
}

// frames sends frames in groups of a limited size.
func (w *writing) frames(ctx context.Context, frames []store.Frame) error {
	var cols frameColumns
	size := 0
	for i := range frames {
		cols.add(&frames[i])
		if size += len(frames[i].Body); size < chunkBytes && len(cols.runID) < chunkRows {
			continue
		}
		w.pending.Queue(w.sql.putFrames, cols.args()...)
		if err := w.flush(ctx); err != nil {
			return err
		}
		cols, size = frameColumns{}, 0
	}
	if len(cols.runID) > 0 {
		w.pending.Queue(w.sql.putFrames, cols.args()...)
	}
	return nil
}
