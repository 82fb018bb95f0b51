package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"waybill.dev/waybill/services/eventlog/store"
)

// List returns rows of a tenant; see store.Lister.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Run, error) {
	return store.ListParts(q, func(q store.Query, part store.Part) ([]store.Run, error) {
		text, args := listQuery(q, part)
		return list(ctx, s, "runs", scanRun, func(h *handle) (*sql.Rows, error) { return h.read.db.QueryContext(ctx, text, args...) })
	})
}

// Due returns runs with a due timer; see store.Lister.
func (s *Store) Due(ctx context.Context, beforeMs int64, after store.Timer, limit int) ([]store.Run, error) {
	return list(ctx, s, "runs", scanRun, func(h *handle) (*sql.Rows, error) {
		return h.read.due.QueryContext(ctx, beforeMs, after.DueMs, after.Tenant, after.RunID, limit)
	})
}

// Owned returns the runs of an owner; see store.Lister.
func (s *Store) Owned(ctx context.Context, process string, after store.Key, limit int) ([]store.Run, error) {
	return list(ctx, s, "runs", scanRun, func(h *handle) (*sql.Rows, error) {
		return h.read.owned.QueryContext(ctx, process, after.Tenant, after.RunID, limit)
	})
}

// Substitutions returns the latest of a tenant; see store.Lister.
func (s *Store) Substitutions(ctx context.Context, tenant, since string, limit int) ([]store.Substitution, error) {
	return list(ctx, s, "substitutions", scanSubstitution, func(h *handle) (*sql.Rows, error) {
		return h.read.substitutions.QueryContext(ctx, tenant, since, limit)
	})
}

func list[T any](ctx context.Context, s *Store, what string, scan func(context.Context, scanner) (T, error), query func(h *handle) (*sql.Rows, error)) ([]T, error) {
	var out []T
	err := s.with(func(h *handle) error {
		rows, err := query(h)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err reports errors
		for rows.Next() {
			one, err := scan(ctx, rows)
			if err != nil {
				return err
			}
			out = append(out, one)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	return out, nil
}

// selection is the FROM and WHERE of a query. p is the scanned table, columns the one that holds the
// rows.
type selection struct {
	from, columns string
	where         []string
	args          []any
}

func (w *selection) add(cond string, values ...any) {
	w.where, w.args = append(w.where, cond), append(w.args, values...)
}

func (w *selection) clauses() string {
	return " FROM " + w.from + " WHERE " + strings.Join(w.where, " AND ")
}

// filters builds the selection for the filters that are set. With a tag or a mark it scans the first
// of them, otherwise an index for one of the others.
func filters(q store.Query) *selection {
	w := &selection{from: "runs AS p", columns: "p", where: []string{"p.tenant = ?"}, args: []any{q.Tenant}}
	if q.Sort != store.SortCreated {
		w.from += " INDEXED BY runs_by_" + q.Sort.Column()
	}
	walk := func(table, cond string, values ...any) {
		w.from, w.columns = table+" AS p JOIN runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id", "r"
		w.add(cond, values...)
	}
	walks := q.Sort == store.SortCreated && q.Words == ""
	if q.Words != "" {
		w.byWords(q)
	}
	if q.Tag != "" && walks {
		walk("tags", "p.tag = ?", q.Tag)
	} else if q.Tag != "" {
		w.add(`EXISTS (SELECT 1 FROM tags AS t WHERE t.tenant = p.tenant AND t.tag = ?
			AND t.created_at = p.created_at AND t.run_id = p.run_id)`, q.Tag)
	}
	for _, m := range q.Marks() {
		if w.columns == "p" && walks {
			walk("marks", "p.name = ? AND p.value = ?", string(m.Name), m.Value)
			continue
		}
		w.add(`EXISTS (SELECT 1 FROM marks AS m WHERE m.tenant = p.tenant AND m.name = ? AND m.value = ?
			AND m.created_at = p.created_at AND m.run_id = p.run_id)`, string(m.Name), m.Value)
	}
	if q.Status != "" {
		w.add(w.columns+".status = ?", string(q.Status))
	}
	if q.WorkflowID != "" {
		w.add(w.columns+".workflow_id = ?", q.WorkflowID)
	}
	if q.ErrorCode != "" {
		w.add(w.columns+".error_code = ?", q.ErrorCode)
	}
	if q.Since != "" {
		w.add("p.created_at >= ?", q.Since)
	}
	if q.Until != "" {
		w.add("p.created_at < ?", q.Until)
	}
	if q.MinCost != nil {
		w.add(w.columns+".cost >= ?", *q.MinCost)
	}
	if q.WaitingSince != "" {
		w.add(w.columns+".waiting_since <= ?", q.WaitingSince)
	}
	if q.Asking {
		w.add(w.columns + ".asks > 0")
	}
	return w
}

// listQuery builds the statement of a part of a list.
func listQuery(q store.Query, part store.Part) (string, []any) {
	if q.Words != "" {
		return wordsQuery(q)
	}
	sort := q.Sort
	if part != store.PartWith {
		q.Sort = store.SortCreated
	}
	w := filters(q)
	order, than := "DESC", "<"
	if q.Ascending {
		order, than = "ASC", ">"
	}
	if part == store.PartWith {
		return keyedQuery(w, q, []string{sort.Column(), "created_at", "run_id"}, order, than)
	}
	if column := rangeColumn(q); column != "" && w.columns == "p" && part == store.PartAll {
		w.from += " INDEXED BY runs_by_" + column
		return keyedQuery(w, q, []string{"created_at", "run_id"}, order, than)
	}
	if part == store.PartWithout {
		w.add(w.columns + "." + sort.Column() + " IS NULL")
	}
	if q.After != (store.Place{}) {
		w.add("(p.created_at, p.run_id) "+than+" (?, ?)", q.After.CreatedAt, q.After.RunID)
	}
	text := "SELECT " + w.columns + "." + strings.ReplaceAll(runColumns, ", ", ", "+w.columns+".") + w.clauses() +
		" ORDER BY p.created_at " + order + ", p.run_id " + order + " LIMIT ?"
	return text, append(w.args, q.Limit)
}

// rangeColumn returns the column of a filter that has an index with the columns of other filters; empty
// if there is none.
func rangeColumn(q store.Query) string {
	switch {
	case q.WaitingSince != "":
		return store.SortWaiting.Column()
	case q.MinCost != nil:
		return store.SortCost.Column()
	default:
		return ""
	}
}

// keyedQuery builds a statement that orders by keys. The subquery selects by the index of the first
// table alone, if that has the columns of the filters.
func keyedQuery(w *selection, q store.Query, keys []string, order, than string) (string, []any) {
	list := func(table, separator string) string {
		return table + "." + strings.Join(keys, separator+table+".")
	}
	if len(keys) > 2 {
		w.add("p." + keys[0] + " IS NOT NULL")
	}
	if q.After != (store.Place{}) {
		place := []any{q.After.CreatedAt, q.After.RunID}
		if len(keys) > 2 {
			place = append([]any{q.After.Value}, place...)
		}
		w.add("("+list("p", ", ")+") "+than+" (?"+strings.Repeat(", ?", len(keys)-1)+")", place...)
	}
	by := func(table string) string { return " ORDER BY " + list(table, " "+order+", ") + " " + order }
	text := "SELECT r." + strings.ReplaceAll(runColumns, ", ", ", r.") +
		" FROM (SELECT p.tenant, p.run_id" + w.clauses() + by("p") + " LIMIT ?) AS k" +
		" JOIN runs AS r ON r.tenant = k.tenant AND r.run_id = k.run_id" + by("r")
	return text, append(w.args, q.Limit)
}
