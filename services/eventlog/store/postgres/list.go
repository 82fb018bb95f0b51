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
	return s.rows(ctx, func(sql *statements) (string, []any) { return listQuery(sql, q) })
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

// listQuery builds the statement for the filters that are set. With a tag or a mark it scans the
// first of them, otherwise an index for one of the others.
func listQuery(sql *statements, q store.Query) (string, []any) {
	// p is the scanned table, columns the one that holds the rows.
	text, columns := sql.list, "p"
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := []string{"p.tenant = " + arg(encode(q.Tenant))}
	if q.Tag != "" {
		text, columns = sql.listTagged, "r"
		where = append(where, "p.tag = "+arg(encode(q.Tag)))
	}
	for _, m := range q.Marks() {
		name, value := arg(string(m.Name)), arg(encode(m.Value))
		if columns == "p" {
			text, columns = sql.listMarked, "r"
			where = append(where, "p.name = "+name+" AND p.value = "+value)
			continue
		}
		where = append(where, sql.marked+" AND m.name = "+name+" AND m.value = "+value+")")
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
