package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

// writeStmts are the statements of the writing connection.
type writeStmts struct {
	tail, putTail, putRun, putTag, putFrame, putMark, putSubstitution *sql.Stmt
	eraseFrames, eraseTag, eraseMark, eraseSubstitution, eraseRun     *sql.Stmt
	fillFacts                                                         *sql.Stmt
	getTally, putTally, expireTally, eraseTallies                     *sql.Stmt
	getText, putText, setText, eraseText, indexText, unindexText      *sql.Stmt
}

func (w *writeStmts) prepare(ctx context.Context, conn *sql.Conn) error {
	for _, s := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&w.tail, `SELECT pos, hash, sum FROM tail WHERE id = 1`},
		{&w.putTail, `INSERT INTO tail (id, pos, hash, sum) VALUES (1, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET pos = excluded.pos, hash = excluded.hash, sum = excluded.sum
			WHERE excluded.pos >= tail.pos`},
		{
			&w.putRun,
			`INSERT INTO runs (` + runColumns + `) VALUES (?` + strings.Repeat(", ?", strings.Count(runColumns, ",")) + `)
			ON CONFLICT (tenant, run_id) DO UPDATE SET
				status = excluded.status, started_at = excluded.started_at, completed_at = excluded.completed_at,
				error_code = excluded.error_code, head = excluded.head, pos = excluded.pos, hash = excluded.hash,
				due_ms = excluded.due_ms, asks = excluded.asks, last_event_at = excluded.last_event_at,
				waits = excluded.waits, owner = excluded.owner, owner_epoch = excluded.owner_epoch,
				owned_since = excluded.owned_since, damage = excluded.damage, ` + setFacts + `, sum = excluded.sum
			WHERE excluded.pos >= runs.pos`,
		},
		{&w.putTag, `INSERT INTO tags (tenant, tag, created_at, run_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`},
		{&w.putFrame, `INSERT INTO frames (tenant, run_id, first, last, types, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`},
		{
			&w.putMark,
			`INSERT INTO marks (tenant, name, value, created_at, run_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		},
		{&w.putSubstitution, `INSERT INTO substitutions (` + substitutionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`},
		{&w.eraseFrames, `DELETE FROM frames WHERE tenant = ? AND run_id = ?`},
		{&w.eraseTag, `DELETE FROM tags WHERE tenant = ? AND tag = ? AND created_at = ? AND run_id = ?`},
		{
			&w.eraseMark,
			`DELETE FROM marks WHERE tenant = ? AND name = ? AND value = ? AND created_at = ? AND run_id = ?`,
		},
		{&w.eraseSubstitution, `DELETE FROM substitutions WHERE tenant = ? AND at = ? AND run_id = ? AND seq = ?`},
		{&w.eraseRun, `DELETE FROM runs WHERE tenant = ? AND run_id = ?`},
		{&w.fillFacts, `UPDATE runs SET (` + factColumns + `, sum) = (?` + strings.Repeat(", ?", strings.Count(factColumns, ",")+1) + `)
			WHERE tenant = ? AND run_id = ? AND pos = ? AND facts = 0`},
		{&w.getTally, `SELECT doc, sum FROM tallies WHERE tenant = ? AND grain = ? AND at = ? AND workflow_id = ?`},
		{&w.putTally, `INSERT INTO tallies (tenant, grain, at, workflow_id, sum, doc) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET sum = excluded.sum, doc = excluded.doc`},
		{&w.expireTally, `DELETE FROM tallies WHERE tenant = ? AND grain = ? AND at < ?`},
		{&w.eraseTallies, `DELETE FROM tallies WHERE tenant = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE tenant = ?1)`},
		{&w.getText, `SELECT id, words FROM texts WHERE tenant = ? AND run_id = ?`},
		{&w.putText, `INSERT OR IGNORE INTO texts (id, tenant, run_id, words)
			SELECT coalesce((SELECT max(id) + 1 FROM texts WHERE id >= ?1 AND id < ?2), ?1), ?3, ?4, ?5 RETURNING id`},
		{&w.setText, `UPDATE texts SET words = ? WHERE id = ?`},
		{&w.eraseText, `DELETE FROM texts WHERE id = ?`},
		{&w.indexText, `INSERT INTO text_index (rowid, words) VALUES (?, ?)`},
		{&w.unindexText, `INSERT INTO text_index (text_index, rowid, words) VALUES ('delete', ?, ?)`},
	} {
		stmt, err := conn.PrepareContext(ctx, s.sql)
		if err != nil {
			return err
		}
		*s.to = stmt
	}
	return nil
}

func (w *writeStmts) close() error {
	return closeAll(w.tail, w.putTail, w.putRun, w.putTag, w.putFrame, w.putMark, w.putSubstitution,
		w.eraseFrames, w.eraseTag, w.eraseMark, w.eraseSubstitution, w.eraseRun, w.fillFacts,
		w.getTally, w.putTally, w.expireTally, w.eraseTallies,
		w.getText, w.putText, w.setText, w.eraseText, w.indexText, w.unindexText)
}

func closeAll(stmts ...*sql.Stmt) error {
	var errs []error
	for _, s := range stmts {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Tail returns the end of the last batch; see store.Writer.
func (s *Store) Tail(ctx context.Context) (store.Tail, error) {
	var t store.Tail
	err := s.with(func(h *handle) (err error) {
		t, err = h.write.stored(ctx)
		return err
	})
	return t, err
}

// Apply stores a batch in one transaction; see store.Writer.
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// A batch takes milliseconds; a cancellable context would cost a goroutine per statement.
	ctx = context.WithoutCancel(ctx)
	return s.with(func(h *handle) error {
		s.writing.Lock()
		defer s.writing.Unlock()
		if err := h.transact(ctx, func() error { return h.write.batch(ctx, b) }); err != nil {
			return fmt.Errorf("apply batch up to %d: %w", b.Tail.Pos, err)
		}
		return s.scrub(ctx, h, len(b.Erased) > 0)
	})
}

// transact calls write in a transaction.
func (h *handle) transact(ctx context.Context, write func() error) error {
	if _, err := h.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	err := write()
	if err == nil {
		_, err = h.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// SQLite rolls back some failed transactions itself; then this fails.
		_, _ = h.conn.ExecContext(ctx, "ROLLBACK")
	}
	return err
}

func (w *writeStmts) batch(ctx context.Context, b store.Batch) error {
	for i := range b.Runs {
		if err := w.run(ctx, &b.Runs[i]); err != nil {
			return err
		}
	}
	for i := range b.Frames {
		f := &b.Frames[i]
		types := row.JoinTypes(f.Types)
		_, err := w.putFrame.ExecContext(ctx, f.Tenant, f.RunID, f.First, f.Last, types, int64(row.SumFrame(f, types)), f.Body)
		if err != nil {
			return err
		}
	}
	if err := w.found(ctx, b); err != nil {
		return err
	}
	if err := w.texts(ctx, b.Texts); err != nil {
		return err
	}
	if err := w.tallies(ctx, &b); err != nil {
		return err
	}
	for _, key := range b.Sealed {
		if _, err := w.eraseFrames.ExecContext(ctx, key.Tenant, key.RunID); err != nil {
			return err
		}
	}
	for i := range b.Erased {
		if err := w.erase(ctx, &b.Erased[i]); err != nil {
			return err
		}
	}
	for _, tenant := range b.ErasedTenants() {
		if _, err := w.eraseTallies.ExecContext(ctx, tenant); err != nil {
			return err
		}
	}
	_, err := w.putTail.ExecContext(ctx, int64(b.Tail.Pos), b.Tail.Hash, int64(row.SumTail(b.Tail))) //nolint:gosec // G115: positions stay far below 2^63
	return err
}

func (w *writeStmts) run(ctx context.Context, r *store.Run) error {
	tags := row.JoinTags(r.Tags)
	due := sql.NullInt64{Int64: r.DueMs, Valid: r.DueMs != 0}
	args := append(make([]any, 0, 32), r.Tenant, r.RunID, r.WorkflowID, string(r.Status), r.CreatedAt, r.StartedAt,
		r.CompletedAt, r.ErrorCode, tags, r.Head, int64(r.Pos), r.Hash, due, r.Asks, r.LastEventAt, r.Waits, //nolint:gosec // G115: as above
		r.Owner.Process, int64(r.Owner.Epoch), r.Owner.Since, r.Damage) //nolint:gosec // G115: epochs stay far below 2^63
	_, err := w.putRun.ExecContext(ctx, append(factArgs(args, &r.Facts), int64(row.SumRun(r, tags)))...)
	if err != nil || !r.New {
		return err
	}
	for _, tag := range r.Tags {
		if _, err := w.putTag.ExecContext(ctx, r.Tenant, tag, r.CreatedAt, r.RunID); err != nil {
			return err
		}
	}
	return nil
}

// found writes the marks and substitutions of a batch.
func (w *writeStmts) found(ctx context.Context, b store.Batch) error {
	for _, m := range b.Marks {
		if _, err := w.putMark.ExecContext(ctx, m.Tenant, string(m.Name), m.Value, m.CreatedAt, m.RunID); err != nil {
			return err
		}
	}
	for i := range b.Substitutions {
		s := &b.Substitutions[i]
		missing := row.JoinTags(s.Missing)
		_, err := w.putSubstitution.ExecContext(ctx, s.Tenant, s.At, s.RunID, s.Sequence, s.NodeID, s.Original.Provider, s.Original.Model,
			s.Fallback.Provider, s.Fallback.Model, missing, int64(row.SumSubstitution(s, missing)))
		if err != nil {
			return err
		}
	}
	return nil
}
