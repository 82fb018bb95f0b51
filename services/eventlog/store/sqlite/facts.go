package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

// factColumns are the columns of a run's facts in the order of factArgs and factScan. tokens is the
// sum of the two before it, for its index.
const factColumns = `facts, model, last_node, tokens_in, tokens_out, tokens, cost, duration_ms, waiting_since, inputs`

// setFacts updates the facts of a row.
const setFacts = `facts = excluded.facts, model = excluded.model, last_node = excluded.last_node,
	tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out, tokens = excluded.tokens,
	cost = excluded.cost, duration_ms = excluded.duration_ms, waiting_since = excluded.waiting_since,
	inputs = excluded.inputs`

// factArgs appends the values of factColumns.
func factArgs(to []any, f *store.Facts) []any {
	return append(to, f.Known, text(f.Model), text(f.LastNode), f.TokensIn, f.TokensOut, f.Tokens(), f.Cost, f.DurationMs,
		text(f.WaitingSince), f.Inputs)
}

func text(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

// factScan reads the values of factColumns.
type factScan struct {
	known                  bool
	model, lastNode, since sql.NullString
	in, out, sum, duration sql.NullInt64
	cost                   sql.NullFloat64
	inputs                 string
}

func (s *factScan) into(to []any) []any {
	return append(to, &s.known, &s.model, &s.lastNode, &s.in, &s.out, &s.sum, &s.cost, &s.duration, &s.since, &s.inputs)
}

func (s *factScan) facts() store.Facts {
	f := store.Facts{
		Known: s.known, Model: s.model.String, LastNode: s.lastNode.String, WaitingSince: s.since.String, Inputs: s.inputs,
		TokensIn: number(s.in), TokensOut: number(s.out), DurationMs: number(s.duration),
	}
	if s.cost.Valid {
		f.Cost = &s.cost.Float64
	}
	return f
}

func number(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

// WithoutFacts returns rows of an older version; see store.FactsWriter.
func (s *Store) WithoutFacts(ctx context.Context, limit int) ([]store.Run, error) {
	return list(ctx, s, "runs without facts", scanRun, func(h *handle) (*sql.Rows, error) {
		return h.read.db.QueryContext(ctx, `SELECT `+runColumns+` FROM runs WHERE facts = 0 LIMIT ?`, limit)
	})
}

// FillFacts completes rows of an older version; see store.FactsWriter.
func (s *Store) FillFacts(ctx context.Context, rows []store.Run, marks []store.Mark) error {
	ctx = context.WithoutCancel(ctx) // as in Apply
	return s.with(func(h *handle) error {
		s.writing.Lock()
		defer s.writing.Unlock()
		err := h.transact(ctx, func() error { return h.write.fill(ctx, rows, marks) })
		if err != nil {
			return fmt.Errorf("fill facts: %w", err)
		}
		return nil
	})
}

func (w *writeStmts) fill(ctx context.Context, rows []store.Run, marks []store.Mark) error {
	filled := map[store.Key]bool{}
	for i := range rows {
		r := &rows[i]
		args := append(factArgs(nil, &r.Facts), int64(row.SumRun(r, row.JoinTags(r.Tags))), r.Tenant, r.RunID, int64(r.Pos)) //nolint:gosec // G115: positions stay far below 2^63
		res, err := w.fillFacts.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		filled[r.Key] = n == 1
	}
	for _, m := range marks {
		if !filled[m.Key] {
			continue
		}
		if _, err := w.putMark.ExecContext(ctx, m.Tenant, string(m.Name), m.Value, m.CreatedAt, m.RunID); err != nil {
			return err
		}
	}
	return nil
}

// Count counts runs; see store.Counter.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (store.Counts, error) {
	text, args := countQuery(q, limit)
	found := map[wire.Status]int{}
	err := s.with(func(h *handle) error {
		rows, err := h.read.db.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err reports errors
		for rows.Next() {
			var status string
			var n int
			if err := rows.Scan(&status, &n); err != nil {
				return unreadable(ctx, err)
			}
			found[wire.Status(status)] = n
		}
		return rows.Err()
	})
	if err != nil {
		return store.Counts{}, fmt.Errorf("count runs: %w", err)
	}
	return store.NewCounts(found, q.CountsEach(), limit), nil
}

func countQuery(q store.Query, limit int) (text string, args []any) {
	q.Sort = store.SortCreated
	if !q.CountsEach() {
		q.Status = ""
		w, order := filters(q), "p.created_at DESC, p.run_id DESC"
		if q.Words != "" {
			order = "f.rowid DESC"
		}
		return "SELECT status, count(*) FROM (SELECT " + w.columns + ".status AS status" + w.clauses() +
			" ORDER BY " + order + " LIMIT ?) GROUP BY status", append(w.args, limit+1)
	}
	var each []string
	for _, q.Status = range wire.Statuses() {
		w := filters(q)
		each = append(each, "SELECT ? AS status, count(*) FROM (SELECT 1"+w.clauses()+" LIMIT ?)")
		args = append(append(append(args, string(q.Status)), w.args...), limit+1)
	}
	return strings.Join(each, " UNION ALL "), args
}
