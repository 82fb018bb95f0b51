package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/services/eventlog/store"
)

// List returns rows of a tenant; see store.Lister.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Run, error) {
	return store.ListParts(q, func(q store.Query, part store.Part) ([]store.Run, error) {
		return s.rows(ctx, func(sql *statements) (string, []any) { return listQuery(sql, q, part) })
	})
}

// Due returns runs with a due timer; see store.Lister.
func (s *Store) Due(ctx context.Context, beforeMs int64, after store.Timer, limit int) ([]store.Run, error) {
	return s.rows(ctx, func(sql *statements) (string, []any) {
		return sql.due, []any{beforeMs, after.DueMs, after.Tenant, after.RunID, limit}
	})
}

// Owned returns the runs of an owner; see store.Lister.
func (s *Store) Owned(ctx context.Context, process string, after store.Key, limit int) ([]store.Run, error) {
	return s.rows(ctx, func(sql *statements) (string, []any) {
		return sql.owned, []any{encode(process), encode(after.Tenant), encode(after.RunID), limit}
	})
}

// Substitutions returns the latest of a tenant; see store.Lister.
func (s *Store) Substitutions(ctx context.Context, tenant, since string, limit int) ([]store.Substitution, error) {
	return list(ctx, s, "substitutions", scanSubstitution, func(sql *statements) (string, []any) {
		return sql.substitutions, []any{encode(tenant), encode(since), limit}
	}, func(*generation, store.Substitution) {})
}

func (s *Store) rows(ctx context.Context, query func(sql *statements) (string, []any)) ([]store.Run, error) {
	return list(ctx, s, "runs", scanRun, query, func(g *generation, r store.Run) { g.reach(r.Pos) })
}

// list reads rows and calls a function with each.
func list[T any](
	ctx context.Context, s *Store, what string, scan func(pgx.Row) (T, error), query func(sql *statements) (string, []any), read func(*generation, T),
) ([]T, error) {
	var out []T
	err := s.read(ctx, s.readers, func(ctx context.Context, g *generation) error {
		text, args := query(&g.sql)
		rows, err := s.readers.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		out, err = pgx.AppendRows([]T(nil), rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
		if err == nil {
			for i := range out {
				read(g, out[i])
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	return out, nil
}

// selection is the FROM and WHERE of a query. p is the scanned table, columns the one that holds the
// rows; from starts a query of rows.
type selection struct {
	from, columns string
	where         []string
	args          []any
}

// arg adds an argument and returns its place.
func (w *selection) arg(v any) string {
	w.args = append(w.args, v)
	return fmt.Sprintf("$%d", len(w.args))
}

func (w *selection) add(cond string) { w.where = append(w.where, cond) }

// clauses returns the query without its columns.
func (w *selection) clauses() string {
	return w.from[strings.Index(w.from, " FROM "):] + " WHERE " + strings.Join(w.where, " AND ")
}

// filters builds the selection for the filters that are set. With a tag or a mark it scans the first
// of them, otherwise an index for one of the others.
func filters(sql *statements, q store.Query) *selection {
	w := &selection{}
	w.reset(sql, q)
	return w
}

// reset builds another selection whose arguments follow those of the one before.
func (w *selection) reset(sql *statements, q store.Query) {
	w.from, w.columns, w.where = sql.list, "p", nil
	w.add("p.tenant = " + w.arg(encode(q.Tenant)))
	walks := q.Sort == store.SortCreated && q.Words == ""
	if q.Words != "" {
		w.from = sql.listTexts
		w.add("x.words @@ " + w.arg(tsquery(q)) + "::text::tsquery")
	}
	if q.Tag != "" && walks {
		w.from, w.columns = sql.listTagged, "r"
		w.add("p.tag = " + w.arg(encode(q.Tag)))
	} else if q.Tag != "" {
		w.add(sql.tagged + " AND t.tag = " + w.arg(encode(q.Tag)) + " LIMIT 1)")
	}
	for _, m := range q.Marks() {
		name, value := w.arg(string(m.Name)), w.arg(encode(m.Value))
		if w.columns == "p" && walks {
			w.from, w.columns = sql.listMarked, "r"
			w.add("p.name = " + name + " AND p.value = " + value)
			continue
		}
		w.add(sql.marked + " AND m.name = " + name + " AND m.value = " + value + " LIMIT 1)")
	}
	for _, f := range []struct{ cond, value string }{
		{w.columns + ".status = ", string(q.Status)},
		{w.columns + ".workflow_id = ", q.WorkflowID},
		{w.columns + ".error_code = ", q.ErrorCode},
		{"p.created_at >= ", q.Since},
		{"p.created_at < ", q.Until},
		{w.columns + ".waiting_since <= ", q.WaitingSince},
	} {
		if f.value != "" {
			w.add(f.cond + w.arg(encode(f.value)))
		}
	}
	if q.MinCost != nil {
		w.add(w.columns + ".cost >= " + w.arg(*q.MinCost))
	}
	if q.Asking {
		w.add(w.columns + ".asks > 0")
	}
}

// listQuery builds the statement of a part of a list.
func listQuery(sql *statements, q store.Query, part store.Part) (string, []any) {
	column := q.Sort.Column()
	if part != store.PartWith {
		q.Sort = store.SortCreated
	}
	w := filters(sql, q)
	order, than := "DESC", " < "
	if q.Ascending {
		order, than = "ASC", " > "
	}
	keys := []string{"p.created_at", "p.run_id"}
	switch part {
	case store.PartAll:
	case store.PartWith:
		keys = append([]string{"p." + column}, keys...)
		w.add("p." + column + " IS NOT NULL")
	case store.PartWithout:
		w.add(w.columns + "." + column + " IS NULL")
	}
	if q.After != (store.Place{}) {
		place := w.arg(encode(q.After.CreatedAt)) + ", " + w.arg(encode(q.After.RunID))
		if part == store.PartWith {
			place = w.arg(sortArg(q.After.Value)) + ", " + place
		}
		w.add("(" + strings.Join(keys, ", ") + ")" + than + "(" + place + ")")
	}
	text := w.from + " WHERE " + strings.Join(w.where, " AND ") +
		" ORDER BY " + strings.Join(keys, " "+order+", ") + " " + order + " LIMIT " + w.arg(q.Limit)
	return text, w.args
}

// sortArg returns the value of a place as it is stored.
func sortArg(v any) any {
	if s, ok := v.(string); ok {
		return encode(s)
	}
	return v
}
