package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/protocol/subject"
)

// found is an object of the store.
type found struct {
	id     int64
	of     subject.Run
	state  int
	blocks []cold.Block
}

// find returns an object and its blocks without data. Errors: cold.ErrNotFound, cold.ErrUnavailable.
func (s *Store) find(ctx context.Context, run subject.Run) (f found, err error) {
	f.of = subject.Run{Tenant: run.Tenant, RunID: run.RunID}
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		f.blocks = nil
		err := tx.QueryRow(ctx, `SELECT id, workflow_id, state FROM objects WHERE tenant = $1 AND run_id = $2`, run.Tenant, run.RunID).
			Scan(&f.id, &f.of.WorkflowID, &f.state)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: %s", cold.ErrNotFound, run.RunID)
		}
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT next, pos, hash FROM blocks WHERE id = $1 ORDER BY n`, f.id)
		if err != nil {
			return err
		}
		var b cold.Block
		var hash []byte
		var pos int64
		_, err = pgx.ForEachRow(rows, []any{&b.Next, &pos, &hash}, func() error {
			b.Pos, b.Hash = uint64(pos), hex.EncodeToString(hash) //nolint:gosec // G115: not negative
			f.blocks = append(f.blocks, b)
			return nil
		})
		return err
	})
	return f, err
}

// Blocks returns the blocks of a run; see cold.Reader.
func (s *Store) Blocks(ctx context.Context, run subject.Run) (subject.Run, []cold.Block, error) {
	f, err := s.find(ctx, run)
	switch {
	case err != nil:
		return f.of, nil, err
	case f.state == deleted:
		return f.of, nil, fmt.Errorf("%w: %s", cold.ErrDeleted, run.RunID)
	case len(f.blocks) == 0: // removed between the two statements, or lost
		return f.of, nil, fmt.Errorf("%w: run %s has no blocks", cold.ErrUnavailable, run.RunID)
	}
	return f.of, f.blocks, nil
}

// Data returns the data of a block; see cold.Reader. A batch that is not there may have been removed with
// an object that was replaced since its place was read.
func (s *Store) Data(ctx context.Context, run subject.Run, block int) ([]byte, error) {
	data, p, err := s.locate(ctx, run, block)
	if err != nil || data != nil {
		return data, err
	}
	data, err = s.fetch(ctx, run, block, p)
	if !errors.Is(err, ErrNoObject) {
		return data, err
	}
	_, now, lerr := s.locate(ctx, run, block)
	if lerr != nil {
		return nil, lerr
	}
	if now.batch == nil || *now.batch == *p.batch {
		return nil, err
	}
	return s.fetch(ctx, run, block, now)
}

// locate returns the data of a block, or its place in the bucket.
func (s *Store) locate(ctx context.Context, run subject.Run, block int) (data []byte, p place, err error) {
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT b.data, b.size, b.place, o.body_key, c.name, (SELECT bucket FROM totals) FROM objects o
			JOIN blocks b ON b.id = o.id AND b.n = $3 LEFT JOIN batches c ON c.id = o.batch
			WHERE o.tenant = $1 AND o.run_id = $2 AND o.state <> 2`, run.Tenant, run.RunID, block).Scan(&data, &p.size, &p.at, &p.key, &p.batch, &p.in)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: %s", cold.ErrNotFound, run.RunID)
		}
		return err
	})
	return data, p, err
}

// Knows reports whether the store has, or had, the object of a run. Errors: cold.ErrUnavailable.
func (s *Store) Knows(ctx context.Context, run subject.Run) (known bool, err error) {
	_, err = s.find(ctx, run)
	return err == nil, ignoreNotFound(err)
}

// Released reports whether an object was confirmed as released, or is being released; see cold.Store.
func (s *Store) Released(ctx context.Context, run subject.Run) (is bool, err error) {
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM objects WHERE tenant = $1 AND run_id = $2 AND released)`, run.Tenant, run.RunID).
			Scan(&is)
	})
	return is, err
}

// Pending returns runs with pending objects; see cold.Store.
func (s *Store) Pending(ctx context.Context, after cold.Cursor, limit int) (runs []subject.Run, next cold.Cursor, err error) {
	id, _ := strconv.ParseInt(string(after), 10, 64) // the empty cursor is 0
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, tenant, workflow_id, run_id FROM objects WHERE state = 1 AND id > $1 ORDER BY id LIMIT $2`, id, limit)
		if err != nil {
			return err
		}
		var r subject.Run
		_, err = pgx.ForEachRow(rows, []any{&id, &r.Tenant, &r.WorkflowID, &r.RunID}, func() error {
			runs = append(runs, r)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, after, err
	}
	return runs, cold.Cursor(strconv.FormatInt(id, 10)), nil
}

// Totals counts the objects; see cold.Store.
func (s *Store) Totals(ctx context.Context) (t cold.Totals, err error) {
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT runs, bytes, (SELECT count(*) FROM objects WHERE state = 1) FROM totals`).Scan(&t.Runs, &t.Bytes, &t.Pending)
	})
	return t, err
}

// GivenUp returns the position of the last GiveUp, 0 if there was none. Errors: ErrBehind,
// cold.ErrUnavailable.
func (s *Store) GivenUp(ctx context.Context) (until uint64, err error) {
	pos, writes, seen := int64(0), int64(0), s.seen.Load()
	err = s.view(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT given_up, writes FROM totals`).Scan(&pos, &writes)
	})
	if err != nil {
		return 0, err
	}
	if err := behind(writes, seen); err != nil {
		return 0, err
	}
	s.note(writes)
	return uint64(pos), nil //nolint:gosec // G115: not negative
}
