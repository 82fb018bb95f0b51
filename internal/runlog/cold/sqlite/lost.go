package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"waybill.dev/waybill/protocol/subject"
)

// Knows reports whether the store has, or had, the object of a run. Errors: cold.ErrUnavailable,
// cold.ErrDamaged.
func (s *Store) Knows(ctx context.Context, run subject.Run) (bool, error) {
	_, _, err := find(ctx, s.reader, run)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, classify(err)
}

// Released reports whether an object was confirmed as released, or is being released; see cold.Store.
func (s *Store) Released(ctx context.Context, run subject.Run) (is bool, err error) {
	err = s.reader.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM objects WHERE tenant = ? AND run_id = ? AND (state = ? OR releasing = 1))`,
		run.Tenant, run.RunID, released).Scan(&is)
	return is, classify(err)
}

// GiveUp records that runs which were sealed up to a position of the log are not expected in the store.
// Errors: cold.ErrUnavailable, cold.ErrDamaged.
func (s *Store) GiveUp(ctx context.Context, until uint64) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE given_up SET until = ?`, int64(until)) //nolint:gosec // G115: positions stay far below 2^63
		return err
	})
}

// GivenUp returns the position of the last GiveUp, 0 if there was none. Errors: cold.ErrUnavailable,
// cold.ErrDamaged.
func (s *Store) GivenUp(ctx context.Context) (until uint64, err error) {
	err = s.reader.QueryRowContext(ctx, `SELECT until FROM given_up`).Scan(&until)
	return until, classify(err)
}
