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
	doc, sum, err = row.EncodeTally(b, add)
	if err != nil {
		return err
	}
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

// Tallies returns tallies; see store.TallyReader.
func (s *Store) Tallies(ctx context.Context, q store.TallyQuery) ([]store.Tallied, error) {
	return list(ctx, s, "tallies", func(ctx context.Context, from scanner) (store.Tallied, error) {
		t := store.Tallied{Bucket: tally.Bucket{Tenant: q.Tenant, Grain: q.Grain}}
		var (
			doc []byte
			sum int64
		)
		if err := from.Scan(&t.At, &t.WorkflowID, &sum, &doc); err != nil {
			return t, unreadable(ctx, err)
		}
		var err error
		t.Tally, err = row.DecodeTally(t.Bucket, doc, sum)
		return t, err
	}, func(h *handle) (*sql.Rows, error) {
		return h.read.tallies.QueryContext(ctx, q.Tenant, int64(q.Grain), q.From, q.Until, q.WorkflowID)
	})
}

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
