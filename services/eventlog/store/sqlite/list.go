package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"waybill.dev/waybill/services/eventlog/store"
)

// List gives rows of a tenant; see store.Lister.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Run, error) {
	text, args := listQuery(q)
	return s.rows(ctx, func(h *handle) (*sql.Rows, error) { return h.read.db.QueryContext(ctx, text, args...) })
}

// Due gives runs with a due timer; see store.Lister.
func (s *Store) Due(ctx context.Context, beforeMs int64, limit int) ([]store.Run, error) {
	return s.rows(ctx, func(h *handle) (*sql.Rows, error) { return h.read.due.QueryContext(ctx, beforeMs, limit) })
}

func (s *Store) rows(ctx context.Context, query func(h *handle) (*sql.Rows, error)) ([]store.Run, error) {
	var out []store.Run
	err := s.with(func(h *handle) error {
		rows, err := query(h)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is what tells
		for rows.Next() {
			r, err := scanRun(ctx, rows)
			if err != nil {
				return err
			}
			out = append(out, r)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return out, nil
}

// listQuery writes the statement for the filters that are set. With a tag the
// walk goes along the tags, otherwise along the index of one of the others.
func listQuery(q store.Query) (string, []any) {
	// p is the table that is walked, columns the one that holds the rows.
	from, columns := "runs AS p", "p"
	if q.Tag != "" {
		from, columns = "tags AS p JOIN runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id", "r"
	}
	where, args := []string{"p.tenant = ?"}, []any{q.Tenant}
	add := func(cond string, values ...any) {
		where, args = append(where, cond), append(args, values...)
	}
	if q.Tag != "" {
		add("p.tag = ?", q.Tag)
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
