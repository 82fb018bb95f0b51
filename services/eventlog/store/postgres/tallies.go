package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
	"waybill.dev/waybill/services/eventlog/tally"
)

// tallyColumns are rows of tallies.
type tallyColumns struct {
	tenant, workflowID []string
	grain, at, sum     []int64
	doc                [][]byte
}

func (c *tallyColumns) add(b tally.Bucket) {
	c.tenant = append(c.tenant, encode(b.Tenant))
	c.grain = append(c.grain, int64(b.Grain))
	c.at = append(c.at, b.At)
	c.workflowID = append(c.workflowID, encode(b.WorkflowID))
}

func (c *tallyColumns) keys() []any { return []any{c.tenant, c.grain, c.at, c.workflowID} }

// queueTallies queues the read of the tallies that a batch changes.
func (g *generation) queueTallies(begin *pgx.Batch, deltas []tally.Delta) {
	if len(deltas) == 0 {
		return
	}
	var cols tallyColumns
	for _, b := range tally.Ordered(tally.Sum(deltas, 0)) {
		cols.add(b)
	}
	begin.Queue(g.sql.lockTallies, cols.keys()...)
}

func scanTally(from pgx.Row) (t store.Tallied, err error) {
	var (
		sum int64
		doc []byte
	)
	if err := from.Scan(&t.Tenant, &t.Grain, &t.At, &t.WorkflowID, &sum, &doc); err != nil {
		return t, err
	}
	t.Tenant, t.WorkflowID = decode(t.Tenant), decode(t.WorkflowID)
	t.Stored = len(doc)
	t.Tally, err = row.DecodeTally(t.Bucket, doc, sum)
	return t, err
}

// readTallies reads the answer to queueTallies.
func readTallies(results pgx.BatchResults, deltas []tally.Delta) (map[tally.Bucket]*tally.Tally, error) {
	if len(deltas) == 0 {
		return nil, nil
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (store.Tallied, error) { return scanTally(r) })
	out := make(map[tally.Bucket]*tally.Tally, len(all))
	for i := range all {
		out[all[i].Bucket] = &all[i].Tally
	}
	return out, err
}

// tallies queues what the frames after a position add to the stored tallies.
func (w *writing) tallies(deltas []tally.Delta, after uint64, stored map[tally.Bucket]*tally.Tally) {
	sums := tally.Sum(deltas, after)
	buckets := tally.Ordered(sums)
	var begun []tally.Bucket
	for _, b := range buckets {
		if old := stored[b]; old != nil {
			old.Merge(sums[b])
			sums[b] = old
		} else if b.Grain.Keeps() > 0 {
			begun = append(begun, b)
		}
	}
	for chunk := range slices.Chunk(buckets, chunkRows) {
		var cols tallyColumns
		for _, b := range chunk {
			doc, sum := row.EncodeTally(b, sums[b])
			cols.add(b)
			cols.sum, cols.doc = append(cols.sum, sum), append(cols.doc, doc)
		}
		w.pending.Queue(w.sql.putTallies, append(cols.keys(), cols.sum, cols.doc)...)
	}
	for _, b := range begun { // after the rows, because an expired bucket may be among them
		w.pending.Queue(w.sql.expireTallies, encode(b.Tenant), int64(b.Grain), b.At-b.Grain.Keeps())
	}
}

// talliesAtOnce limits the rows that one query of Tallies reads.
const talliesAtOnce = 1024

// Tallies reads tallies; see store.TallyReader. It reads pages, because a query that lost its
// connection is sent again.
func (s *Store) Tallies(ctx context.Context, q store.TallyQuery, each func(*store.Tallied) error) error {
	read := store.ReadTallies{Limit: q.MaxBytes}
	for at, workflow := q.From, ""; ; {
		page, err := list(ctx, s, "tallies", scanTally, func(sql *statements) (string, []any) {
			return sql.tallies, []any{encode(q.Tenant), int64(q.Grain), at, encode(workflow), q.Until, encode(q.WorkflowID), talliesAtOnce}
		}, func(*generation, store.Tallied) {})
		if err != nil {
			return err
		}
		for i := range page {
			if err := errors.Join(read.Add(&page[i]), each(&page[i])); err != nil {
				return err
			}
		}
		if len(page) < talliesAtOnce {
			return nil
		}
		last := &page[len(page)-1]
		at, workflow = last.At, last.WorkflowID
	}
}

// TalliedTenants returns tenants; see store.TallyReader.
func (s *Store) TalliedTenants(ctx context.Context, after string, limit int) ([]string, error) {
	return list(ctx, s, "tenants", func(from pgx.Row) (tenant string, err error) {
		err = from.Scan(&tenant)
		return decode(tenant), err
	}, func(sql *statements) (string, []any) { return sql.talliedTenants, []any{encode(after), limit} }, func(*generation, string) {})
}
