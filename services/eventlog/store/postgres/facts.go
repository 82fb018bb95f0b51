package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

// factColumns are the columns of a run's facts in the order of factRows and factScan. tokens is the
// sum of the two before it, for its index.
const factColumns = `facts, model, last_node, tokens_in, tokens_out, tokens, cost, duration_ms, waiting_since, inputs`

// factRows are the facts of rows of runs.
type factRows struct {
	known                             []int16
	model, lastNode, since            []*string
	tokensIn, tokensOut, sum, elapsed []*int64
	cost                              []*float64
	inputs                            []string
}

func (c *factRows) add(f *store.Facts) {
	known := int16(0)
	if f.Known {
		known = 1
	}
	c.known = append(c.known, known)
	c.model = append(c.model, text(f.Model))
	c.lastNode = append(c.lastNode, text(f.LastNode))
	c.tokensIn = append(c.tokensIn, f.TokensIn)
	c.tokensOut = append(c.tokensOut, f.TokensOut)
	c.sum = append(c.sum, f.Tokens())
	c.cost = append(c.cost, f.Cost)
	c.elapsed = append(c.elapsed, f.DurationMs)
	c.since = append(c.since, text(f.WaitingSince))
	c.inputs = append(c.inputs, encode(f.Inputs))
}

func (c *factRows) args() []any {
	return []any{c.known, c.model, c.lastNode, c.tokensIn, c.tokensOut, c.sum, c.cost, c.elapsed, c.since, c.inputs}
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	s = encode(s)
	return &s
}

// factScan reads the values of factColumns.
type factScan struct {
	known                              int16
	model, lastNode, since             *string
	tokensIn, tokensOut, sum, duration *int64
	cost                               *float64
	inputs                             string
}

func (s *factScan) into(to []any) []any {
	return append(to, &s.known, &s.model, &s.lastNode, &s.tokensIn, &s.tokensOut, &s.sum, &s.cost, &s.duration, &s.since, &s.inputs)
}

func (s *factScan) facts() store.Facts {
	plain := func(s *string) string {
		if s == nil {
			return ""
		}
		return decode(*s)
	}
	return store.Facts{
		Known: s.known != 0, Model: plain(s.model), LastNode: plain(s.lastNode), WaitingSince: plain(s.since),
		TokensIn: s.tokensIn, TokensOut: s.tokensOut, Cost: s.cost, DurationMs: s.duration, Inputs: decode(s.inputs),
	}
}

// WithoutFacts returns rows of an older version; see store.FactsWriter.
func (s *Store) WithoutFacts(ctx context.Context, limit int) ([]store.Run, error) {
	return s.rows(ctx, func(sql *statements) (string, []any) { return sql.withoutFacts, []any{limit} })
}

// FillFacts completes rows of an older version; see store.FactsWriter.
func (s *Store) FillFacts(ctx context.Context, rows []store.Run, marks []store.Mark) error {
	var (
		tenant, runID []string
		pos, sum      []int64
		facts         factRows
		found         markColumns
	)
	for i := range rows {
		r := &rows[i]
		tenant, runID = append(tenant, encode(r.Tenant)), append(runID, encode(r.RunID))
		pos = append(pos, int64(r.Pos)) //nolint:gosec // G115: positions stay far below 2^63
		sum = append(sum, int64(row.SumRun(r, row.JoinTags(r.Tags))))
		facts.add(&r.Facts)
	}
	for i := range marks {
		found.add(&marks[i])
	}
	args := append([]any{tenant, runID, pos}, facts.args()...)
	args = append(args, sum, found.tenant, found.name, found.value, found.createdAt, found.runID)
	err := s.read(ctx, s.writer, func(ctx context.Context, g *generation) error {
		_, err := s.writer.Exec(ctx, g.sql.fillFacts, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("fill facts: %w", err)
	}
	return nil
}

// Count counts runs; see store.Counter.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (store.Counts, error) {
	type count struct {
		status string
		n      int
	}
	read := func(row pgx.Row) (c count, err error) {
		err = row.Scan(&c.status, &c.n)
		return c, err
	}
	all, err := list(ctx, s, "counts", read, func(sql *statements) (string, []any) { return countQuery(sql, q, limit) }, func(*generation, count) {})
	if err != nil {
		return store.Counts{}, err
	}
	found := map[wire.Status]int{}
	for _, c := range all {
		found[wire.Status(decode(c.status))] = c.n
	}
	return store.NewCounts(found, q.CountsEach(), limit), nil
}

func countQuery(sql *statements, q store.Query, limit int) (text string, args []any) {
	q.Sort = store.SortCreated
	if !q.CountsEach() {
		q.Status = ""
		w := filters(sql, q)
		return "SELECT status, count(*) FROM (SELECT " + w.columns + ".status AS status" + w.clauses() +
			" ORDER BY p.created_at DESC, p.run_id DESC LIMIT " + w.arg(limit+1) + ") AS s GROUP BY status", w.args
	}
	var (
		each []string
		w    = &selection{}
	)
	for _, q.Status = range wire.Statuses() {
		w.reset(sql, q)
		status := w.arg(string(q.Status))
		each = append(each, "SELECT "+status+"::text AS status, count(*) FROM (SELECT 1"+w.clauses()+" LIMIT "+w.arg(limit+1)+") AS s")
	}
	return strings.Join(each, " UNION ALL "), w.args
}
