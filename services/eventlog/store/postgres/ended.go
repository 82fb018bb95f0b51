package postgres

import (
	"context"
	"fmt"

	"waybill.dev/waybill/services/eventlog/store"
)

// Oldest returns the oldest ended run of each workflow; see store.Ender.
func (s *Store) Oldest(ctx context.Context, after store.Workflow, limit int) (all []store.Run, err error) {
	for len(all) < limit {
		next, err := s.rows(ctx, func(sql *statements) (string, []any) {
			return sql.oldest, []any{encode(after.Tenant), encode(after.WorkflowID)}
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
	return s.rows(ctx, func(sql *statements) (string, []any) {
		return sql.ended, []any{
			encode(q.Tenant), encode(q.WorkflowID), encode(q.Before), encode(q.After.CompletedAt), encode(q.After.RunID), q.Limit,
		}
	})
}

// CountEnded counts ended runs; see store.Ender.
func (s *Store) CountEnded(ctx context.Context, of store.Workflow, before []string) ([]int64, error) {
	counts := make([]int64, len(before))
	for i, at := range before {
		err := s.read(ctx, s.readers, func(ctx context.Context, g *generation) error {
			return s.readers.QueryRow(ctx, g.sql.countEnded, encode(of.Tenant), encode(of.WorkflowID), encode(at)).Scan(&counts[i])
		})
		if err != nil {
			return nil, fmt.Errorf("count ended runs: %w", err)
		}
	}
	return counts, nil
}
