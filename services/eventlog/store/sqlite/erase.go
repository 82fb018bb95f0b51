package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"waybill.dev/waybill/services/eventlog/store"
)

// erase deletes everything of a run. SQLite overwrites it with zeros (secure_delete).
func (w *writeStmts) erase(ctx context.Context, e *store.Erasure) error {
	for _, tag := range e.Tags {
		if _, err := w.eraseTag.ExecContext(ctx, e.Tenant, tag, e.CreatedAt, e.RunID); err != nil {
			return err
		}
	}
	for _, m := range e.Marks {
		if _, err := w.eraseMark.ExecContext(ctx, m.Tenant, string(m.Name), m.Value, m.CreatedAt, m.RunID); err != nil {
			return err
		}
	}
	for _, v := range e.Substitutions {
		if _, err := w.eraseSubstitution.ExecContext(ctx, v.Tenant, v.At, v.RunID, v.Sequence); err != nil {
			return err
		}
	}
	if _, err := w.eraseFrames.ExecContext(ctx, e.Tenant, e.RunID); err != nil {
		return err
	}
	if err := w.eraseWords(ctx, e.Key); err != nil {
		return err
	}
	_, err := w.eraseRun.ExecContext(ctx, e.Tenant, e.RunID)
	return err
}

// scrub removes what the log of the database, and files that were moved aside, still have of erased
// runs. If readers are in the way, the next batch tries again; the store is correct in any case.
func (s *Store) scrub(ctx context.Context, h *handle, erased bool) error {
	if erased {
		s.unscrubbed.Store(true)
	}
	if !s.unscrubbed.Load() {
		return nil
	}
	// A long reader, such as a backup, must not delay batches.
	if _, err := h.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return fmt.Errorf("checkpoint after an erasure: %w", err)
	}
	defer func() {
		_, _ = h.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds()))
	}()
	var busy, pages, done int
	if err := h.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done); err != nil {
		return fmt.Errorf("checkpoint after an erasure: %w", err)
	}
	s.unscrubbed.Store(busy != 0)
	aside, err := filepath.Glob(s.cfg.Path + ".damaged-*")
	if err != nil {
		return err
	}
	for _, f := range aside {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Error("a damaged read model, which may hold an erased run, cannot be removed", "path", f, "error", err)
		}
	}
	return nil
}
