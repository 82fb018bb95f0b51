package writebehind

import (
	"context"

	"waybill.dev/waybill/services/eventlog/store"
)

// WithoutFacts returns rows of an older version; see store.FactsWriter. Rows in memory have facts.
func (s *Store) WithoutFacts(ctx context.Context, limit int) ([]store.Run, error) {
	return s.below.WithoutFacts(ctx, limit)
}

// FillFacts completes rows below; see store.FactsWriter. Rows that have not been committed have moved.
func (s *Store) FillFacts(ctx context.Context, rows []store.Run, marks []store.Mark) error {
	return s.below.FillFacts(ctx, rows, marks)
}

// Tallies reads tallies; see store.TallyReader.
func (s *Store) Tallies(ctx context.Context, q store.TallyQuery, each func(*store.Tallied) error) error {
	if err := s.waitCommitted(ctx); err != nil {
		return err
	}
	return s.below.Tallies(ctx, q, each)
}

// TalliedTenants returns tenants; see store.TallyReader.
func (s *Store) TalliedTenants(ctx context.Context, after string, limit int) ([]string, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.TalliedTenants(ctx, after, limit)
}

// Count counts runs; see store.Counter.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (store.Counts, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return store.Counts{}, err
	}
	return s.below.Count(ctx, q, limit)
}
