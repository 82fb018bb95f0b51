package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/internal/runlog/cold"
)

// claim records the bucket of the first batch, and rejects another one. The caller holds the write lock.
func (s *Store) claim(ctx context.Context, tx pgx.Tx) error {
	var in *string
	err := tx.QueryRow(ctx, `UPDATE totals SET bucket = coalesce(bucket, $1) RETURNING bucket`, s.cfg.Bucket.String()).Scan(&in)
	if err != nil {
		return err
	}
	return s.mine(in)
}

// mine returns an error if the contents are in another bucket than this process uses, because it would
// report all of them as lost. in is nil before the first batch.
func (s *Store) mine(in *string) error {
	if s.cfg.Bucket == nil || in == nil || *in == s.cfg.Bucket.String() {
		s.strange.Store(false)
		return nil
	}
	if !s.strange.Swap(true) {
		s.cfg.Logger.Error("the contents of the sealed runs are in another bucket: they cannot be read, and no run is sealed",
			"bucket", *in, "bucket_of_this_process", s.cfg.Bucket.String(),
			"remedy", "give --cold-bucket as it was, or, if the bucket was moved, see \"Another bucket\" in docs/cold-store.md")
	}
	return fmt.Errorf("%w: the contents are in the bucket %s, and this process has %s", cold.ErrUnavailable, *in, s.cfg.Bucket)
}

const (
	// collected is the number of batches removed in one step.
	collected = 16
	// abandoned is the age from which an unfinished batch counts as abandoned.
	abandoned = "1 hour"
)

// Clean removes batches without runs from the bucket: those whose last run was removed, and those whose
// writer has died. Without their keys the contents are unreadable, so nothing waits for this. Errors:
// cold.ErrUnavailable.
func (s *Store) Clean(ctx context.Context) error {
	if s.cfg.Bucket == nil {
		return nil
	}
	for {
		n, err := s.collect(ctx)
		if err != nil || n < collected {
			return err
		}
	}
}

// collect removes some batches, and returns their number.
func (s *Store) collect(ctx context.Context) (int, error) {
	ids, names, err := s.unused(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var gone []int64
	var failed error
	for i, name := range names {
		if err := s.cfg.Bucket.Delete(ctx, name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%w: remove %s: %w", cold.ErrUnavailable, name, err))
			break // the next one would fail, too
		}
		gone = append(gone, ids[i])
	}
	if len(gone) == 0 {
		return len(ids), failed
	}
	// What was removed is noted, although the time is over.
	err = s.transact(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM batches WHERE id = ANY($1) AND runs < 0`, gone)
		return err
	})
	return len(ids), errors.Join(failed, err)
}

// unused returns some batches without runs, and keeps them from being used.
func (s *Store) unused(ctx context.Context) (ids []int64, names []string, err error) {
	there, err := s.anyUnused(ctx)
	if err != nil || !there {
		return nil, nil, err
	}
	err = s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var in *string
		if err := tx.QueryRow(ctx, `SELECT bucket FROM totals`).Scan(&in); err != nil {
			return err
		}
		if err := s.mine(in); err != nil { // else they would stay in their bucket
			return err
		}
		rows, err := tx.Query(ctx, `UPDATE batches SET runs = -1 WHERE id IN (
			SELECT id FROM batches WHERE `+withoutRuns+` ORDER BY id LIMIT $1) RETURNING id, name`, collected)
		if err != nil {
			return err
		}
		var id int64
		var name string
		_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
			ids, names = append(ids, id), append(names, name)
			return nil
		})
		return err
	})
	return ids, names, err
}

// withoutRuns is true for batches that may be removed.
const withoutRuns = `(runs < 0 OR runs = 0 AND (used OR begun < now() - interval '` + abandoned + `'))`

// anyUnused looks for batches without runs, without waiting for writers.
func (s *Store) anyUnused(ctx context.Context) (there bool, err error) {
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM batches WHERE `+withoutRuns+`)`).Scan(&there)
	})
	return there, err
}
