package cold_test

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// spoilBlocks overwrites the page of a cold store's file where its blocks begin.
func spoilBlocks(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	var page, size int64
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_master WHERE name = 'blocks'`).Scan(&page))
	require.NoError(t, db.QueryRowContext(t.Context(), `PRAGMA page_size`).Scan(&size))
	require.NoError(t, db.Close())
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("garbage!"), int(size/8)), (page-1)*size)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func erased(run subject.Run) *frame.Frame { return &frame.Frame{Run: run, Kind: subject.Erase, Pos: 1} }

func (r *rig) mark(t *testing.T, run subject.Run) {
	t.Helper()
	marked, err := r.Mark(t.Context(), run, frame.Requested)
	require.NoError(t, err)
	require.True(t, marked)
}

// A part of the file is damaged. Its runs are damaged, which no retry mends, and can be erased.
func TestLog_ErasesARunOfADamagedStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cold.db")
	store, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	r := newRigOn(store)
	run, other := r.run(t, "r", 1), r.run(t, "other", 1)
	r.sweep(t)
	require.NoError(t, store.Close())
	spoilBlocks(t, path)
	store, err = sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var logged bytes.Buffer
	r.store, r.Log = store, cold.NewLog(r.hot, store, pastAll, cold.NewFaults(slog.New(slog.NewTextHandler(&logged, nil))))

	for _, damaged := range []subject.Run{run, other} {
		_, err = r.Run(t.Context(), damaged)
		require.ErrorIs(t, err, frame.ErrDamaged)
		require.NotErrorIs(t, err, runlog.ErrUnavailable)
	}
	r.mark(t, run)
	left, err := r.Remaining(t.Context(), erased(run))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, r.Purge(t.Context(), erased(run)))
	require.Contains(t, logged.String(), "cannot be read as a whole")
	require.Contains(t, logged.String(), "bytes of an erased run may be left")
	require.NoError(t, r.Purge(t.Context(), erased(run)))
	_, err = r.Run(t.Context(), run)
	require.ErrorIs(t, err, runlog.ErrErased)
	_, _, err = store.Blocks(t.Context(), run)
	require.ErrorIs(t, err, cold.ErrNotFound)
	_, err = r.Run(t.Context(), other)
	require.ErrorIs(t, err, frame.ErrDamaged)
}

// An erasure gets the frames of the blocks that can be read, and the loss of the others is reported.
func TestLog_ErasesWhatItCanRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 3000, 3000, 3000, 1)
	r.sweep(t)
	o, err := cold.Encode(r.want[run])
	require.NoError(t, err)
	require.Greater(t, len(o.Blocks), 2)
	o.Blocks[1].Data = o.Blocks[1].Data[4:]
	require.NoError(t, r.store.Put(t.Context(), o))
	var logged bytes.Buffer
	log := cold.NewLog(r.hot, r.store, pastAll, cold.NewFaults(slog.New(slog.NewTextHandler(&logged, nil))))
	r.mark(t, run)
	left, err := log.Remaining(t.Context(), &frame.Frame{Run: run, Kind: subject.Erase})
	require.NoError(t, err)
	require.NotEmpty(t, left)
	require.Empty(t, logged.String(), "a question whether it is gone")
	left, err = log.Remaining(t.Context(), erased(run))
	require.NoError(t, err)
	require.Less(t, len(left), len(r.want[run]))
	require.Equal(t, subject.Start, left[0].Kind, "its keys")
	require.Equal(t, subject.End, left[len(left)-1].Kind)
	require.Contains(t, logged.String(), "run_id=r")
}

// refusing is a log that cannot seal one run.
type refusing struct {
	*memory.Log

	run string
}

func (l refusing) Seal(ctx context.Context, run subject.Run, head frame.Head, pos []uint64) error {
	if run.RunID == l.run {
		return runlog.ErrRemovalDenied
	}
	return l.Log.Seal(ctx, run, head, pos)
}

// A pending run that cannot be finished does not stop the others.
func TestSealer_GoesOnAfterARunThatCannotBeFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"a", "b"} {
		o, err := cold.Encode(r.want[r.run(t, id, 1)])
		require.NoError(t, err)
		require.NoError(t, r.store.Put(t.Context(), o))
	}
	for run := range r.want {
		if run.RunID == "a" {
			continue
		}
		err := r.sealer(refusing{r.hot, "a"}, r.store, pastAll).Sweep(t.Context())
		require.ErrorIs(t, err, runlog.ErrRemovalDenied)
		require.True(t, r.sealed(t, run))
		r.same(t, run)
	}
}

// A pending object is damaged, and the log has its run: it is stored again in the same sweep.
func TestSealer_StoresADamagedPendingObjectAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	o, err := cold.Encode(r.want[run])
	require.NoError(t, err)
	o.Blocks[0].Data = o.Blocks[0].Data[4:]
	require.NoError(t, r.store.Put(t.Context(), o))
	require.NoError(t, cold.NewSealer(0, cold.SealerDeps{Log: r.hot, Store: r.store, Past: pastAll, Logger: quiet}).Sweep(t.Context()))
	require.True(t, r.sealed(t, run))
	r.same(t, run)
}

// A host without a hot window leaves the pending objects of erased runs to their erasures, and finishes the
// others.
func TestSealer_WithoutAWindowFinishes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gone, begun, hot := r.run(t, "gone", 1), r.run(t, "begun", 1), r.run(t, "hot", 1)
	for _, run := range []subject.Run{gone, begun} {
		o, err := cold.Encode(r.want[run])
		require.NoError(t, err)
		require.NoError(t, r.store.Put(t.Context(), o))
	}
	r.mark(t, gone)
	require.NoError(t, cold.NewSealer(0, cold.SealerDeps{Log: r.hot, Store: r.store, Past: pastAll, Logger: quiet}).Sweep(t.Context()))
	_, _, err := r.store.Blocks(t.Context(), gone)
	require.NoError(t, err)
	require.NoError(t, r.Purge(t.Context(), erased(gone)))
	_, _, err = r.store.Blocks(t.Context(), gone)
	require.ErrorIs(t, err, cold.ErrDeleted)
	require.True(t, r.sealed(t, begun))
	require.False(t, r.sealed(t, hot))
}

// A sealer that read a run before its erasure cannot store it afterwards.
func TestLog_AnErasedRunCannotBeStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	o, err := cold.Encode(r.want[run])
	require.NoError(t, err)
	r.mark(t, run)
	require.NoError(t, r.Purge(t.Context(), erased(run)))
	require.NoError(t, r.store.Put(t.Context(), o))
	_, _, err = r.store.Blocks(t.Context(), run)
	require.ErrorIs(t, err, cold.ErrNotFound)
}

// A backup has the object of each run that its log says is sealed.
func TestLog_HoldsErasures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	r.sweep(t)
	resume := r.HoldErasures()
	r.mark(t, run)
	require.ErrorIs(t, r.Purge(t.Context(), erased(run)), runlog.ErrUnavailable)
	_, _, err := r.store.Blocks(t.Context(), run)
	require.NoError(t, err)
	resume()
	require.NoError(t, r.Purge(t.Context(), erased(run)))
	_, _, err = r.store.Blocks(t.Context(), run)
	require.ErrorIs(t, err, cold.ErrNotFound)
}

// unscrubbed is a store that deletes an object, and cannot overwrite its bytes the first time.
type unscrubbed struct {
	*sqlite.Store

	calls int
}

func (s *unscrubbed) Delete(ctx context.Context, run subject.Run) error {
	s.calls++
	err := s.Store.Delete(ctx, run)
	if s.calls == 1 {
		return cold.ErrUnavailable
	}
	return err
}

// The object is deleted, and bytes of it are left: a repeated erasure asks for them again.
func TestLog_RepeatsTheDeletionUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	r.sweep(t)
	s := &unscrubbed{Store: r.store}
	log := cold.NewLog(r.hot, s, pastAll, cold.NewFaults(quiet))
	r.mark(t, run)
	require.ErrorIs(t, log.Purge(t.Context(), erased(run)), runlog.ErrUnavailable)
	require.NoError(t, log.Purge(t.Context(), erased(run)))
	require.Equal(t, 2, s.calls)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("(\xb5/\xfd\x04\x00"), 3, uint64(9))
	f.Fuzz(func(t *testing.T, data []byte, next int, pos uint64) {
		s := fixed{cold.Block{Next: next, Pos: pos, Hash: "h", Data: data}}
		if frames, err := cold.All(t.Context(), s, subject.Run{}); err == nil && len(frames) > 0 {
			t.Fatalf("%d frames with a hash that nothing has", len(frames))
		}
	})
}

// fixed is a store with one block.
type fixed struct{ cold.Block }

func (f fixed) Blocks(context.Context, subject.Run) (subject.Run, []cold.Block, error) {
	b := f.Block
	b.Data = nil
	return subject.Run{}, []cold.Block{b}, nil
}

func (f fixed) Data(context.Context, subject.Run, int) ([]byte, error) { return f.Block.Data, nil }
