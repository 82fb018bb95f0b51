package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/services/eventlog/store"
)

// List gives rows of a tenant; see store.Lister.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Run, error) {
	return s.rows(ctx, func(sql *statements) (string, []any) { return listQuery(sql, q) })
}

// Due gives runs with a due timer; see store.Lister.
func (s *Store) Due(ctx context.Context, beforeMs int64, limit int) ([]store.Run, error) {
	return s.rows(ctx, func(sql *statements) (string, []any) { return sql.due, []any{beforeMs, limit} })
}

func (s *Store) rows(ctx context.Context, query func(sql *statements) (string, []any)) ([]store.Run, error) {
	var out []store.Run
	err := s.read(ctx, s.readers, func(ctx context.Context, g *generation) error {
		text, args := query(&g.sql)
		rows, err := s.readers.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		out, err = pgx.AppendRows([]store.Run(nil), rows, func(row pgx.CollectableRow) (store.Run, error) { return scanRun(row) })
		if err == nil {
			for i := range out {
				g.reach(out[i].Pos)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return out, nil
}

// listQuery writes the statement for the filters that are set. With a tag the walk
// goes along the tags, otherwise along the index of one of the others.
func listQuery(sql *statements, q store.Query) (string, []any) {
	// p is the table that is walked, columns the one that holds the rows.
	text, columns := sql.list, "p"
	if q.Tag != "" {
		text, columns = sql.listTagged, "r"
	}
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := []string{"p.tenant = " + arg(encode(q.Tenant))}
	if q.Tag != "" {
		where = append(where, "p.tag = "+arg(encode(q.Tag)))
	}
	if q.Status != "" {
		where = append(where, columns+".status = "+arg(encode(string(q.Status))))
	}
	if q.WorkflowID != "" {
		where = append(where, columns+".workflow_id = "+arg(encode(q.WorkflowID)))
	}
	if q.ErrorCode != "" {
		where = append(where, columns+".error_code = "+arg(encode(q.ErrorCode)))
	}
	if q.Since != "" {
		where = append(where, "p.created_at >= "+arg(encode(q.Since)))
	}
	if q.Asking {
		where = append(where, columns+".asks > 0")
	}
	if q.After != (store.Place{}) {
		where = append(where, "(p.created_at, p.run_id) < ("+arg(encode(q.After.CreatedAt))+", "+arg(encode(q.After.RunID))+")")
	}
	return text + " WHERE " + strings.Join(where, " AND ") + " ORDER BY p.created_at DESC, p.run_id DESC LIMIT " + arg(q.Limit), args
}
