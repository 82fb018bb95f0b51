package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"waybill.dev/waybill/services/eventlog/store"
)

const (
	// oldestSQL reads the first entry of the next workflow in the index.
	oldestSQL = `SELECT ` + runColumns + ` FROM runs WHERE completed_at <> '' AND (tenant, workflow_id) > (?, ?)
		ORDER BY tenant, workflow_id, completed_at, run_id LIMIT 1`
	endedSQL = `SELECT ` + runColumns + ` FROM runs WHERE completed_at <> '' AND tenant = ? AND workflow_id = ?
		AND completed_at < ? AND (completed_at, run_id) > (?, ?) ORDER BY completed_at, run_id LIMIT ?`
	countEndedSQL = `SELECT count(*) FROM runs WHERE completed_at <> '' AND tenant = ? AND workflow_id = ? AND completed_at < ?`
)

// Oldest returns the oldest ended run of each workflow; see store.Ender.
func (s *Store) Oldest(ctx context.Context, after store.Workflow, limit int) (all []store.Run, err error) {
	for len(all) < limit {
		next, err := list(ctx, s, "oldest runs", scanRun, func(h *handle) (*sql.Rows, error) {
			return h.read.db.QueryContext(ctx, oldestSQL, after.Tenant, after.WorkflowID)
		})
		if err != nil || len(next) == 0 {
			return all, err
		}
		all = append(all, next...)
		after = store.Workflow{Tenant: next[0].Tenant, WorkflowID: next[0].WorkflowID}
	}
	return all, nil
}

// Ended returns ended runs; see store.Ender.
func (s *Store) Ended(ctx context.Context, q store.EndedQuery) ([]store.Run, error) {
	return list(ctx, s, "ended runs", scanRun, func(h *handle) (*sql.Rows, error) {
		return h.read.db.QueryContext(ctx, endedSQL, q.Tenant, q.WorkflowID, q.Before, q.After.CompletedAt, q.After.RunID, q.Limit)
	})
}

// CountEnded counts ended runs; see store.Ender.
func (s *Store) CountEnded(ctx context.Context, of store.Workflow, before []string) ([]int64, error) {
	counts := make([]int64, len(before))
	for i, at := range before {
		err := s.with(func(h *handle) error {
			return h.read.db.QueryRowContext(ctx, countEndedSQL, of.Tenant, of.WorkflowID, at).Scan(&counts[i])
		})
		if err != nil {
			return nil, fmt.Errorf("count ended runs: %w", err)
		}
	}
	return counts, nil
}
