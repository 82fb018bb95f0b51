package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
	"waybill.dev/waybill/services/eventlog/tally"
)

// tallies adds what the frames of a batch count: one read and one write for each bucket.
func (w *writeStmts) tallies(ctx context.Context, b *store.Batch) error {
	if len(b.Tallies) == 0 {
		return nil
	}
	stored, err := w.stored(ctx)
	if err != nil {
		return err
	}
	sums := tally.Sum(b.Tallies, stored.Pos)
	for _, bucket := range tally.Ordered(sums) {
		if err := w.tally(ctx, bucket, sums[bucket]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writeStmts) tally(ctx context.Context, b tally.Bucket, add *tally.Tally) error {
	var (
		doc []byte
		sum int64
	)
	err := w.getTally.QueryRowContext(ctx, b.Tenant, int64(b.Grain), b.At, b.WorkflowID).Scan(&doc, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if err := w.expireTallies(ctx, b); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		t, err := row.DecodeTally(b, doc, sum)
		if err != nil {
			return err
		}
		t.Merge(add)
		add = &t
	}
	doc, sum = row.EncodeTally(b, add)
	_, err = w.putTally.ExecContext(ctx, b.Tenant, int64(b.Grain), b.At, b.WorkflowID, sum, doc)
	return err
}

// expireTallies deletes the tenant's buckets that are too old when one begins.
func (w *writeStmts) expireTallies(ctx context.Context, b tally.Bucket) error {
	if b.Grain.Keeps() == 0 {
		return nil
	}
	_, err := w.expireTally.ExecContext(ctx, b.Tenant, int64(b.Grain), b.At-b.Grain.Keeps())
	return err
}

// Tallies reads tallies; see store.TallyReader.
func (s *Store) Tallies(ctx context.Context, q store.TallyQuery, each func(*store.Tallied) error) error {
	read := store.ReadTallies{Limit: q.MaxBytes}
	err := s.with(func(h *handle) error {
		rows, err := h.read.tallies.QueryContext(ctx, q.Tenant, int64(q.Grain), q.From, q.Until, q.WorkflowID)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err reports errors
		for rows.Next() {
			t, err := scanTally(ctx, rows, q)
			if err != nil {
				return err
			}
			if err := errors.Join(read.Add(&t), each(&t)); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return fmt.Errorf("read tallies: %w", err)
	}
	return nil
}

func scanTally(ctx context.Context, from *sql.Rows, q store.TallyQuery) (store.Tallied, error) {
	t := store.Tallied{Bucket: tally.Bucket{Tenant: q.Tenant, Grain: q.Grain}}
	var (
		doc sql.RawBytes
		sum int64
	)
	if err := from.Scan(&t.At, &t.WorkflowID, &sum, &doc); err != nil {
		return t, unreadable(ctx, err)
	}
	var err error
	t.Stored = len(doc)
	t.Tally, err = row.DecodeTally(t.Bucket, doc, sum)
	return t, err
}

// TalliedTenants returns tenants; see store.TallyReader.
func (s *Store) TalliedTenants(ctx context.Context, after string, limit int) ([]string, error) {
	return list(ctx, s, "tenants", func(ctx context.Context, from scanner) (tenant string, err error) {
		if err = from.Scan(&tenant); err != nil {
			err = unreadable(ctx, err)
		}
		return tenant, err
	}, func(h *handle) (*sql.Rows, error) {
		return h.read.db.QueryContext(ctx, talliedTenants, after, limit)
	})
}

// talliedTenants reads one row of the table for each tenant.
const talliedTenants = `WITH RECURSIVE t (tenant) AS (
	SELECT (SELECT tenant FROM tallies WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
	UNION ALL SELECT (SELECT tenant FROM tallies WHERE tallies.tenant > t.tenant ORDER BY tallies.tenant LIMIT 1) FROM t WHERE t.tenant IS NOT NULL)
	SELECT tenant FROM t WHERE tenant IS NOT NULL LIMIT ?2`

// stored returns the tail of the last batch.
func (w *writeStmts) stored(ctx context.Context) (store.Tail, error) {
	var (
		t   store.Tail
		sum int64
	)
	err := w.tail.QueryRowContext(ctx).Scan(&t.Pos, &t.Hash, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read tail: %w", err)
	}
	return t, row.SumTail(t).Verify(sum, "tail", store.Key{})
}
