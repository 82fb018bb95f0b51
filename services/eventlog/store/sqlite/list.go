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
	text, args := listQuery(q)
	return list(ctx, s, "runs", scanRun, func(h *handle) (*sql.Rows, error) { return h.read.db.QueryContext(ctx, text, args...) })
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

// listQuery builds the statement for the filters that are set. With a tag or a mark it scans the
// first of them, otherwise an index for one of the others.
func listQuery(q store.Query) (string, []any) {
	// p is the scanned table, columns the one that holds the rows.
	from, columns := "runs AS p", "p"
	where, args := []string{"p.tenant = ?"}, []any{q.Tenant}
	add := func(cond string, values ...any) {
		where, args = append(where, cond), append(args, values...)
	}
	walk := func(table, cond string, values ...any) {
		from, columns = table+" AS p JOIN runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id", "r"
		add(cond, values...)
	}
	if q.Tag != "" {
		walk("tags", "p.tag = ?", q.Tag)
	}
	for _, m := range q.Marks() {
		if columns == "p" {
			walk("marks", "p.name = ? AND p.value = ?", string(m.Name), m.Value)
			continue
		}
		add(`EXISTS (SELECT 1 FROM marks AS m WHERE m.tenant = p.tenant AND m.name = ? AND m.value = ?
			AND m.created_at = p.created_at AND m.run_id = p.run_id)`, string(m.Name), m.Value)
	}
	if q.Status != "" {
		add(columns+".status = ?", string(q.Status))
	}
	if q.WorkflowID != "" {
		add(columns+".workflow_id = ?", q.WorkflowID)
	}
	if q.ErrorCode != "" {
		add(columns+".error_code = ?", q.ErrorCode)
	}
	if q.Since != "" {
		add("p.created_at >= ?", q.Since)
	}
	if q.Asking {
		add(columns + ".asks > 0")
	}
	if q.After != (store.Place{}) {
		add("(p.created_at, p.run_id) < (?, ?)", q.After.CreatedAt, q.After.RunID)
	}
	text := "SELECT " + columns + "." + strings.ReplaceAll(runColumns, ", ", ", "+columns+".") +
		" FROM " + from + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY p.created_at DESC, p.run_id DESC LIMIT ?"
	return text, append(args, q.Limit)
}
