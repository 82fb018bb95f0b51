package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

// runColumns are the columns of a run's row in the order of scanRun.
const runColumns = `tenant, run_id, workflow_id, status, created_at, started_at, completed_at, error_code, tags, head, pos, hash, due_ms, asks, last_event_at, waits, owner, owner_epoch, owned_since, damage, ` +
	factColumns + `, sum`

// substitutionColumns are the columns of a substitution in the order of scanSubstitution.
const substitutionColumns = `tenant, at, run_id, seq, node_id, original_provider, original_model, fallback_provider, fallback_model, missing, sum`

// readStmts are the fixed statements of the reading connections.
type readStmts struct {
	db                                     *sql.DB
	run, frames, due, owned, substitutions *sql.Stmt
	tallies                                *sql.Stmt
}

func (r *readStmts) prepare(ctx context.Context, db *sql.DB) error {
	r.db = db
	for _, s := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&r.run, `SELECT ` + runColumns + ` FROM runs WHERE tenant = ? AND run_id = ?`},
		// The first row is found by key, so that a page deep in a long run costs as much as the
		// first.
		{&r.frames, `SELECT first, last, types, sum, body FROM frames
			WHERE tenant = ?1 AND run_id = ?2 AND first >= (
				SELECT coalesce(max(first), 0) FROM frames WHERE tenant = ?1 AND run_id = ?2 AND first <= ?3)
			ORDER BY first`},
		{&r.due, `SELECT ` + runColumns + ` FROM runs WHERE due_ms < ? AND (due_ms, tenant, run_id) > (?, ?, ?)
			ORDER BY due_ms, tenant, run_id LIMIT ?`},
		{&r.owned, `SELECT ` + runColumns + ` FROM runs WHERE owner = ? AND owner <> '' AND (tenant, run_id) > (?, ?)
			ORDER BY tenant, run_id LIMIT ?`},
		{&r.substitutions, `SELECT ` + substitutionColumns + ` FROM substitutions WHERE tenant = ? AND at >= ?
			ORDER BY at DESC, run_id DESC, seq DESC LIMIT ?`},
		{&r.tallies, `SELECT at, workflow_id, sum, doc FROM tallies WHERE tenant = ?1 AND grain = ?2 AND at >= ?3 AND at < ?4
			AND (?5 = '' OR workflow_id = ?5) ORDER BY at, workflow_id`},
	} {
		stmt, err := db.PrepareContext(ctx, s.sql)
		if err != nil {
			return err
		}
		*s.to = stmt
	}
	return nil
}

func (r *readStmts) close() error {
	return closeAll(r.run, r.frames, r.due, r.owned, r.substitutions, r.tallies)
}

// Run returns the row of a run; see store.Reader.
func (s *Store) Run(ctx context.Context, key store.Key) (store.Run, error) {
	var run store.Run
	err := s.with(func(h *handle) (err error) {
		// A lookup by key is too short to be worth interrupting.
		ctx := context.WithoutCancel(ctx)
		run, err = scanRun(ctx, h.read.run.QueryRowContext(ctx, key.Tenant, key.RunID))
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: %s", store.ErrNotFound, key.RunID)
		}
		return err
	})
	return run, err
}

// Frames returns frames of a run; see store.Reader.
func (s *Store) Frames(ctx context.Context, key store.Key, from, limit int) ([]store.Frame, error) {
	var frames []store.Frame
	err := s.with(func(h *handle) error {
		rows, err := h.read.frames.QueryContext(ctx, key.Tenant, key.RunID, from)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err reports errors
		events, size := 0, 0
		for events < limit && size < store.PageBytes && rows.Next() {
			f, err := scanFrame(ctx, rows, key)
			if err != nil {
				return err
			}
			if f.Last < from { // ends before the requested events
				continue
			}
			frames = append(frames, f)
			events += f.Last + 1 - max(f.First, from, 0)
			size += len(f.Body)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("read frames of run %s: %w", key.RunID, err)
	}
	return frames, nil
}

type scanner interface{ Scan(dest ...any) error }

func scanRun(ctx context.Context, from scanner) (store.Run, error) {
	var (
		r            store.Run
		status, tags string
		due          sql.NullInt64
		facts        factScan
		sum          int64
	)
	into := []any{
		&r.Tenant, &r.RunID, &r.WorkflowID, &status, &r.CreatedAt, &r.StartedAt, &r.CompletedAt,
		&r.ErrorCode, &tags, &r.Head, &r.Pos, &r.Hash, &due, &r.Asks, &r.LastEventAt, &r.Waits,
		&r.Owner.Process, &r.Owner.Epoch, &r.Owner.Since, &r.Damage,
	}
	err := from.Scan(append(facts.into(into), &sum)...)
	if err != nil {
		return store.Run{}, unreadable(ctx, err)
	}
	r.Status, r.Tags, r.DueMs = wire.Status(status), row.SplitTags(tags), due.Int64
	r.Facts = facts.facts()
	return r, row.SumRun(&r, tags).Verify(sum, "row", r.Key)
}

func scanFrame(ctx context.Context, from scanner, key store.Key) (store.Frame, error) {
	f := store.Frame{Key: key}
	var (
		types string
		sum   int64
	)
	if err := from.Scan(&f.First, &f.Last, &types, &sum, &f.Body); err != nil {
		return f, unreadable(ctx, err)
	}
	f.Types = row.SplitTypes(types)
	return f, row.SumFrame(&f, types).Verify(sum, "frame", key)
}

func scanSubstitution(ctx context.Context, from scanner) (store.Substitution, error) {
	var (
		s       store.Substitution
		missing string
		sum     int64
	)
	err := from.Scan(&s.Tenant, &s.At, &s.RunID, &s.Sequence, &s.NodeID, &s.Original.Provider, &s.Original.Model,
		&s.Fallback.Provider, &s.Fallback.Model, &missing, &sum)
	if err != nil {
		return s, unreadable(ctx, err)
	}
	s.Missing = row.SplitTags(missing)
	return s, row.SumSubstitution(&s, missing).Verify(sum, "substitution", s.Key)
}
