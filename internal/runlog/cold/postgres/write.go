package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/protocol/subject"
)

// Put stores objects; see cold.Store. An object with the content of the stored one does not replace it:
// another process may have read that back, and removes the run from the log.
func (s *Store) Put(ctx context.Context, objects ...*cold.Object) error {
	var fresh []*cold.Object
	judged := map[*cold.Object]judgement{}
	for _, o := range objects {
		j, err := s.holds(ctx, o)
		if err != nil {
			return fmt.Errorf("store run %s: %w", o.Run.RunID, err)
		}
		if judged[o] = j; !j.equal {
			fresh = append(fresh, o)
		}
	}
	in, err := s.writeBatch(ctx, fresh)
	if err != nil {
		return err
	}
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		left, released, err := s.replace(ctx, tx, objects, judged)
		if err != nil {
			return err
		}
		return s.insert(ctx, tx, left, released, in)
	})
}

// judgement is what was read of a stored object before another one is put in its place.
type judgement struct {
	// id is that of its row; 0 without one.
	id int64
	// equal: it has the content of the other one.
	equal bool
}

// holds reads the stored object of the run of another object.
func (s *Store) holds(ctx context.Context, o *cold.Object) (j judgement, err error) {
	found, err := s.find(ctx, o.Run)
	if err != nil {
		return j, ignoreNotFound(err)
	}
	j.id = found.id
	if found.state == deleted || len(found.blocks) != len(o.Blocks) {
		return j, nil
	}
	for i, b := range found.blocks {
		want := o.Blocks[i]
		if b.Next != want.Next || b.Pos != want.Pos || b.Hash != want.Hash {
			return j, nil
		}
		switch data, err := s.Data(ctx, o.Run, i); {
		case errors.Is(err, cold.ErrUnavailable):
			return j, err
		case err != nil || !bytes.Equal(data, want.Data): // damaged, or gone since
			return j, nil //nolint:nilerr // it is replaced
		}
	}
	j.equal = true
	return j, nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, cold.ErrNotFound) {
		return nil
	}
	return err
}

// stored is the row of a run, with the hashes of its blocks.
type stored struct {
	id       int64
	state    int
	released bool
	hashes   []string
}

// has reports whether the row has an object with the hashes of another one. They cover all frames.
func (w *stored) has(o *cold.Object) bool {
	return slices.EqualFunc(w.hashes, o.Blocks, func(hash string, b cold.Block) bool { return hash == b.Hash })
}

// errChanged means that a run was changed while it was stored; the next attempt reads it again.
var errChanged = fmt.Errorf("%w: another process changed it at the same time", cold.ErrUnavailable)

// replace removes the objects of runs, and makes those pending that stay. It returns the objects to insert,
// and whether the frames of their runs were released before. An object stays if it has the content of the
// new one, or if another process has stored it with the same hashes since it was judged.
func (s *Store) replace(ctx context.Context, tx pgx.Tx, objects []*cold.Object, judged map[*cold.Object]judgement) (left []*cold.Object, released map[*cold.Object]bool, err error) {
	known, err := rowsOf(ctx, tx, objects)
	if err != nil {
		return nil, nil, err
	}
	released = map[*cold.Object]bool{}
	var stay []int64
	for _, o := range objects {
		was, there := known[subject.Run{Tenant: o.Run.Tenant, RunID: o.Run.RunID}]
		switch j := judged[o]; {
		case there && was.state == deleted:
			continue
		case there && was.has(o) && (j.equal || was.id != j.id):
			stay = append(stay, was.id)
			continue
		case j.equal: // it has no place in the batch
			return nil, nil, fmt.Errorf("store run %s: %w", o.Run.RunID, errChanged)
		case there:
			if err := remove(ctx, tx, was.id, true); err != nil {
				return nil, nil, err
			}
		}
		left, released[o] = append(left, o), was.released
	}
	_, err = tx.Exec(ctx, `UPDATE objects SET state = $2 WHERE id = ANY($1)`, stay, pending)
	return left, released, err
}

// rowsOf returns the rows of runs.
func rowsOf(ctx context.Context, tx pgx.Tx, objects []*cold.Object) (map[subject.Run]stored, error) {
	tenants, ids := keys(objects)
	rows, err := tx.Query(ctx, `SELECT o.id, o.tenant, o.run_id, o.state, o.released,
			(SELECT coalesce(array_agg(encode(b.hash, 'hex') ORDER BY b.n), '{}') FROM blocks b WHERE b.id = o.id)
		FROM objects o JOIN unnest($1::text[], $2::text[]) AS k (tenant, run_id) ON k.tenant = o.tenant AND k.run_id = o.run_id`, tenants, ids)
	if err != nil {
		return nil, err
	}
	known := map[subject.Run]stored{}
	var run subject.Run
	var was stored
	_, err = pgx.ForEachRow(rows, []any{&was.id, &run.Tenant, &run.RunID, &was.state, &was.released, &was.hashes}, func() error {
		row := was
		row.hashes = slices.Clone(was.hashes)
		known[run] = row
		return nil
	})
	return known, err
}

// insert adds pending objects whose contents are in a batch; in is nil for contents in the database.
func (s *Store) insert(ctx context.Context, tx pgx.Tx, objects []*cold.Object, released map[*cold.Object]bool, in *batch) error {
	if err := in.use(ctx, tx, len(objects)); err != nil || len(objects) == 0 {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT nextval(pg_get_serial_sequence('objects', 'id')) FROM generate_series(1, $1)`, len(objects))
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	var heads, blocks [][]any
	size := int64(0)
	for i, o := range objects {
		batchID, key := in.of(o)
		heads = append(heads, []any{ids[i], o.Run.Tenant, o.Run.RunID, o.Run.WorkflowID, int16(pending), released[o], batchID, key})
		size += o.Bytes()
		for n, b := range o.Blocks {
			hash, err := hex.DecodeString(b.Hash)
			if err != nil {
				return fmt.Errorf("hash of block %d of run %s: %w", n, o.Run.RunID, err)
			}
			data, place := in.placed(o, n)
			blocks = append(blocks, []any{ids[i], int32(n), int64(b.Next), int64(b.Pos), hash, int64(len(b.Data)), data, place}) //nolint:gosec // G115: far below the limits
		}
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"objects"},
		[]string{"id", "tenant", "run_id", "workflow_id", "state", "released", "batch", "body_key"}, pgx.CopyFromRows(heads)); err != nil {
		return err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"blocks"},
		[]string{"id", "n", "next", "pos", "hash", "size", "data", "place"}, pgx.CopyFromRows(blocks)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE totals SET runs = runs + $1, bytes = bytes + $2`, len(objects), size)
	return err
}

// remove removes the content of an object that is not deleted: its blocks and its key. all removes its
// row, too.
func remove(ctx context.Context, tx pgx.Tx, id int64, all bool) error {
	for _, step := range []string{
		`UPDATE totals SET runs = runs - 1, bytes = bytes - (SELECT coalesce(sum(size), 0) FROM blocks WHERE id = $1)`,
		`DELETE FROM blocks WHERE id = $1`,
		`UPDATE batches SET runs = runs - 1 WHERE id = (SELECT batch FROM objects WHERE id = $1) AND runs > 0`,
	} {
		if _, err := tx.Exec(ctx, step, id); err != nil {
			return err
		}
	}
	last := `UPDATE objects SET state = 2, released = false, workflow_id = '', batch = NULL, body_key = NULL WHERE id = $1`
	if all {
		last = `DELETE FROM objects WHERE id = $1`
	}
	_, err := tx.Exec(ctx, last, id)
	return err
}

// withHash selects the object of a run with a hash that is not deleted.
const withHash = `SELECT o.id FROM objects o JOIN LATERAL (SELECT hash FROM blocks WHERE id = o.id ORDER BY n DESC LIMIT 1) last ON true
	WHERE o.tenant = $1 AND o.run_id = $2 AND last.hash = decode($3, 'hex')`

// Releasing notes that the frames of runs are about to be deleted without overwriting; see cold.Store.
func (s *Store) Releasing(ctx context.Context, objects ...cold.Ref) error {
	return s.update(ctx, `UPDATE objects SET released = released OR $4 WHERE state = 1 AND id = (`+withHash+`)`, objects, true)
}

// Confirm ends the pending state of objects; see cold.Store. A run whose frames were released by one of
// two processes stays released.
func (s *Store) Confirm(ctx context.Context, objects ...cold.Ref) error {
	return s.update(ctx, `UPDATE objects SET state = 0, released = released OR $4 WHERE state = 1 AND id = (`+withHash+`)`, objects, false)
}

// update changes objects with their hashes by a statement. always: $4 is true, whatever their Released is.
func (s *Store) update(ctx context.Context, statement string, objects []cold.Ref, always bool) error {
	if len(objects) == 0 {
		return nil
	}
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var all pgx.Batch
		for _, o := range objects {
			all.Queue(statement, o.Run.Tenant, o.Run.RunID, o.Hash, always || o.Released)
		}
		return tx.SendBatch(ctx, &all).Close()
	})
}

// Discard removes a pending object; see cold.Store.
func (s *Store) Discard(ctx context.Context, run subject.Run, hash string) error {
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, withHash+` AND o.state = 1`, run.Tenant, run.RunID, hash).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return remove(ctx, tx, id, true)
	})
}

// Delete removes the object of an erased run; see cold.Store.
func (s *Store) Delete(ctx context.Context, run subject.Run) error {
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var id int64
		var state int
		err := tx.QueryRow(ctx, `SELECT id, state FROM objects WHERE tenant = $1 AND run_id = $2`, run.Tenant, run.RunID).Scan(&id, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			_, err = tx.Exec(ctx, `INSERT INTO objects (tenant, run_id, workflow_id, state) VALUES ($1, $2, '', $3)`, run.Tenant, run.RunID, deleted)
			return err
		case err != nil || state == deleted:
			return err
		}
		return remove(ctx, tx, id, false)
	})
}

// GiveUp records that runs which were sealed up to a position of the log are not expected in the store.
// Errors: cold.ErrUnavailable.
func (s *Store) GiveUp(ctx context.Context, until uint64) error {
	return s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE totals SET given_up = $1`, int64(until)) //nolint:gosec // G115: positions stay far below 2^63
		return err
	})
}
