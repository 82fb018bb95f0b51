package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Hold calls do within a transaction of a writer.
func (s *Store) Hold(ctx context.Context, do func()) error {
	return s.transact(ctx, func(context.Context, pgx.Tx) error {
		do()
		return nil
	})
}
