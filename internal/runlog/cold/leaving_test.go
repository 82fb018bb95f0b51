package cold_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// large is a log with a size of its own that counts how frames are removed.
type large struct {
	*memory.Log

	extent                runlog.Extent
	overwritten, released *atomic.Int64
}

func newLarge(log *memory.Log, e runlog.Extent) large {
	return large{log, e, &atomic.Int64{}, &atomic.Int64{}}
}

func (l large) Extent(context.Context) (runlog.Extent, error) { return l.extent, nil }

func (l large) Drop(ctx context.Context, run subject.Run, pos []uint64, how runlog.Removal) error {
	if how == runlog.Release {
		l.released.Add(1)
	} else {
		l.overwritten.Add(1)
	}
	return l.Log.Drop(ctx, run, pos, how)
}

// Few frames are overwritten. Of many, those far from the end of the log are released, and the others
// stay, so that an erasure finds and overwrites them.
func TestSealer_ChoosesHowFramesLeave(t *testing.T) {
	t.Parallel()
	const file = 8 << 20
	for name, tt := range map[string]struct {
		extent                runlog.Extent
		overwritten, released int64
	}{
		"a small log":             {extent: runlog.Extent{Bytes: 64 << 10, End: 100, FileBytes: file}, overwritten: 40},
		"the end of a large log":  {extent: runlog.Extent{Bytes: 1 << 30, End: 200, FileBytes: file}, overwritten: 16},
		"far from the end":        {extent: runlog.Extent{Bytes: 1 << 30, End: 100_000, FileBytes: file}, released: 40},
		"a log without old files": {extent: runlog.Extent{FileBytes: file}, overwritten: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 40 {
				r.run(t, fmt.Sprintf("r%d", i), 1, 1)
			}
			log := newLarge(r.hot, tt.extent)
			require.NoError(t, r.sealer(log, r.store, pastAll).Sweep(t.Context()))
			require.Equal(t, tt.overwritten, log.overwritten.Load())
			require.Equal(t, tt.released, log.released.Load())
			for run := range r.want {
				require.True(t, r.sealed(t, run))
				r.same(t, run)
			}
			totals, err := r.store.Totals(t.Context())
			require.NoError(t, err)
			require.Equal(t, 40-tt.overwritten-tt.released, totals.Pending)
		})
	}
}

// A run whose frames wait in the log is erased like any other.
func TestSealer_ErasesRunsThatWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 40 {
		r.run(t, fmt.Sprintf("r%d", i), 1, 1)
	}
	s := r.sealer(newLarge(r.hot, runlog.Extent{Bytes: 1 << 30, End: 200, FileBytes: 8 << 20}), r.store, pastAll)
	require.NoError(t, s.Sweep(t.Context()))
	waits := subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: "r39"}
	r.mark(t, waits)
	left, err := r.Remaining(t.Context(), erased(waits))
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.NoError(t, r.Purge(t.Context(), erased(waits)))
	for range 5 {
		require.NoError(t, s.Sweep(t.Context()))
	}
	_, _, err = r.store.Blocks(t.Context(), waits)
	require.ErrorIs(t, err, cold.ErrDeleted)
	pending, _, err := r.store.Pending(t.Context(), "", 100)
	require.NoError(t, err)
	require.Empty(t, pending)
}

// Processes die at random calls, before or after their effect, while runs are created and erased. At no
// point a run is lost, and the last process leaves nothing behind.
func TestSealer_DiesAtRandomSteps(t *testing.T) {
	t.Parallel()
	deaths := 300
	if testing.Short() {
		deaths = 30
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r, random := newRig(t), rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: repeatable
			gone := map[subject.Run]bool{}
			for i := range deaths {
				r.run(t, fmt.Sprintf("r%d", i), 1+random.IntN(3), 1)
				d := &dying{Log: r.hot, Store: r.store, at: 1 + random.IntN(12), done: random.IntN(2) == 0}
				if random.IntN(2) == 0 { // frames wait, or are released
					d.extent = runlog.Extent{Bytes: 1 << 30, End: 100_000 * random.Uint64N(2), FileBytes: 8 << 20}
				}
				_ = r.sealer(d, d, pastAll).Sweep(t.Context()) // it dies, or there is nothing left to do
				for run := range r.want {
					if random.IntN(8) > 0 {
						continue
					}
					if random.IntN(4) > 0 {
						r.same(t, run)
						continue
					}
					r.mark(t, run)
					if random.IntN(2) == 0 {
						_ = r.sealer(d, d, pastAll).Sweep(t.Context()) // it is dead, or has nothing to do
					}
					require.NoError(t, r.Purge(t.Context(), erased(run)))
					delete(r.want, run)
					gone[run] = true
				}
			}
			r.sweep(t)
			r.finished(t, gone)
		})
	}
}

// finished checks that all runs are sealed, and that nothing is left of erased ones.
func (r *rig) finished(t *testing.T, gone map[subject.Run]bool) {
	t.Helper()
	for run := range r.want {
		require.True(t, r.sealed(t, run))
		r.same(t, run)
	}
	for _, runs := range []map[subject.Run]bool{gone, keys(r.want)} {
		for run := range runs {
			left, err := r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
	for run := range gone {
		_, err := r.Run(t.Context(), run)
		require.ErrorIs(t, err, runlog.ErrErased)
		_, _, err = r.store.Blocks(t.Context(), run)
		require.ErrorIs(t, err, cold.ErrNotFound)
	}
	totals, err := r.store.Totals(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(len(r.want)), totals.Runs)
	require.Zero(t, totals.Pending)
}

func keys(of map[subject.Run][]*frame.Frame) map[subject.Run]bool {
	out := map[subject.Run]bool{}
	for run := range of {
		out[run] = true
	}
	return out
}

// The file of the cold store is lost. The first erasure of a sealed run says that it was not whole; a
// repetition, and the erasure of a run of the log, do not.
func TestLog_ReportsAnErasureOfALostObject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lost := r.run(t, "lost", 1)
	r.sweep(t)
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "cold.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	faults := cold.NewFaults(quiet)
	log := cold.NewLog(r.hot, store, pastAll, faults)
	_, err = log.Run(t.Context(), lost)
	require.ErrorIs(t, err, frame.ErrDamaged)
	_, err = log.Last(t.Context(), lost)
	require.ErrorIs(t, err, frame.ErrDamaged)
	require.Equal(t, []string{"sealed runs that cannot be read from the cold store: 1"}, faults.Warnings())
	hot := r.run(t, "hot", 1)
	for _, run := range []subject.Run{hot, lost} {
		r.mark(t, run)
		mark := r.markOf(t, run)
		for range 2 {
			_, err := log.Remaining(t.Context(), mark)
			require.NoError(t, err)
			require.NoError(t, log.Purge(t.Context(), mark))
		}
	}
	require.Contains(t, faults.Warnings(), "erasures of sealed runs that may have left content: 1")
}

// markOf returns the mark of an erased run.
func (r *rig) markOf(t *testing.T, run subject.Run) (mark *frame.Frame) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	err := r.hot.Follow(ctx, 0, func(batch []*frame.Frame) error {
		for _, f := range batch {
			if f.Run == run && f.Kind == subject.Erase {
				mark = f
				cancel()
			}
		}
		return nil
	}, func(subject.Run, uint64, error) {})
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, mark)
	return mark
}

// stuck is a log that cannot remove the frames of one run.
type stuck struct {
	large

	run   string
	tries *atomic.Int64
}

func (l stuck) Drop(ctx context.Context, run subject.Run, pos []uint64, how runlog.Removal) error {
	if run.RunID == l.run {
		l.tries.Add(1)
		return runlog.ErrUnavailable
	}
	return l.large.Drop(ctx, run, pos, how)
}

// The frames of a run cannot be removed. All others are, further runs are sealed, and the run is tried
// again after growing pauses.
func TestSealer_PutsARunAsideWhoseFramesStay(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]runlog.Extent{
		"overwritten": {Bytes: 64 << 10, End: 100, FileBytes: 8 << 20},
		"released":    {Bytes: 1 << 30, End: 100_000, FileBytes: 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 40 {
				r.run(t, fmt.Sprintf("r%d", i), 1, 1)
			}
			log, now := stuck{newLarge(r.hot, e), "r7", &atomic.Int64{}}, time.Now().Add(2*time.Hour)
			var logged bytes.Buffer
			s := cold.NewSealer(time.Hour, cold.SealerDeps{
				Log: log, Store: r.store, Past: pastAll, Clock: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			})
			require.ErrorIs(t, s.Sweep(t.Context()), runlog.ErrUnavailable)
			require.Equal(t, int64(39), log.overwritten.Load()+log.released.Load())
			totals, err := r.store.Totals(t.Context())
			require.NoError(t, err)
			require.Equal(t, int64(1), totals.Pending)
			require.Contains(t, logged.String(), "run_id=r7")
			more := r.run(t, "more", 1, 1)
			require.NoError(t, s.Sweep(t.Context()), "it waits")
			require.True(t, r.sealed(t, more))
			require.Equal(t, int64(1), log.tries.Load())
			require.Contains(t, s.Warnings(), "sealed runs whose frames cannot be removed from the run log: 1")
			now = now.Add(time.Minute)
			require.Error(t, s.Sweep(t.Context()))
			now = now.Add(time.Minute)
			require.NoError(t, s.Sweep(t.Context()), "the pause grows")
			now = now.Add(time.Minute)
			require.Error(t, s.Sweep(t.Context()))
			require.Equal(t, int64(3), log.tries.Load())
			for run := range r.want {
				r.same(t, run)
			}
		})
	}
}

// A failure of readers does not keep ended runs from being sealed.
func TestSealer_SealsWhileFramesCannotBeReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 300 {
		r.run(t, fmt.Sprintf("r%d", i), 1)
	}
	behind := func(context.Context, uint64) error { return runlog.ErrUnavailable }
	log := newLarge(r.hot, runlog.Extent{Bytes: 1 << 30, End: 100_000, FileBytes: 8 << 20})
	require.ErrorIs(t, r.sealer(log, r.store, behind).Sweep(t.Context()), runlog.ErrUnavailable)
	for run := range r.want {
		require.True(t, r.sealed(t, run))
	}
	require.Zero(t, log.released.Load())
}

// misread is a store whose objects read back damaged at first.
type misread struct {
	*sqlite.Store

	bad *atomic.Bool
}

func (s misread) Data(ctx context.Context, run subject.Run, block int) ([]byte, error) {
	data, err := s.Store.Data(ctx, run, block)
	if s.bad.Load() && len(data) > 0 {
		data[len(data)-1]++
	}
	return data, err
}

// An object that reads back damaged is reported, and stored again by the next sweep.
func TestSealer_ReportsAnObjectThatReadsBackDamaged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	var logged bytes.Buffer
	store := misread{r.store, &atomic.Bool{}}
	store.bad.Store(true)
	s := cold.NewSealer(time.Hour, cold.SealerDeps{
		Log: r.hot, Store: store, Past: pastAll, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	require.NoError(t, s.Sweep(t.Context()))
	require.Contains(t, logged.String(), "level=ERROR")
	require.Contains(t, logged.String(), "run_id=r")
	require.Equal(t, []string{"times that a damaged run was not sealed: 1"}, s.Warnings())
	require.False(t, r.sealed(t, run))
	store.bad.Store(false)
	require.NoError(t, s.Sweep(t.Context()))
	require.True(t, r.sealed(t, run))
	r.same(t, run)
}

// Of a log whose size is unknown to be large, frames are released when waiting runs are behind them.
func TestSealer_ReleasesWhatWaitingRunsAreBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 40 {
		r.run(t, fmt.Sprintf("r%d", i), 1, 1)
	}
	bodies := uint64(0)
	for _, frames := range r.want {
		for _, f := range frames {
			bodies += uint64(len(f.Body))
		}
	}
	// A file is a quarter of all frames, so two files are half of them.
	log := newLarge(r.hot, runlog.Extent{Bytes: 1 << 40, End: 1, FileBytes: bodies / 4})
	s := cold.NewSealer(time.Hour, cold.SealerDeps{
		Log: log, Store: r.store, Past: pastAll, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: quiet, NeverOverwrite: true,
	})
	require.NoError(t, s.Sweep(t.Context()))
	require.Zero(t, log.overwritten.Load())
	require.InDelta(t, 20, log.released.Load(), 3)
}

// A requested erasure of a run whose frames were released is reported once, because the server may keep
// their bytes. That of a run whose frames were overwritten is not.
func TestLog_ReportsAnErasureOfAReleasedRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  uint64
		want int
	}{"released": {100_000, 1}, "overwritten": {200, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 40 {
				r.run(t, fmt.Sprintf("r%d", i), 1, 1)
			}
			log := newLarge(r.hot, runlog.Extent{Bytes: 1 << 30, End: tt.end, FileBytes: 8 << 20})
			require.NoError(t, r.sealer(log, r.store, pastAll).Sweep(t.Context()))
			run := subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: "r0"}
			left, err := r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
			require.NoError(t, err)
			require.Empty(t, left)
			var logged bytes.Buffer
			over := cold.NewLog(r.hot, r.store, pastAll, cold.NewFaults(slog.New(slog.NewTextHandler(&logged, nil))))
			r.mark(t, run)
			for range 2 {
				require.NoError(t, over.Purge(t.Context(), r.markOf(t, run)))
			}
			require.Equal(t, tt.want, strings.Count(logged.String(), "may stay in a file of the NATS server"))
		})
	}
}

// unconfirmed is a store whose process dies before it confirms.
type unconfirmed struct{ cold.Store }

func (unconfirmed) Confirm(context.Context, ...cold.Ref) error { return cold.ErrUnavailable }

// An erasure after frames were released and before their object was confirmed is reported, too.
func TestLog_ReportsAnErasureBetweenReleaseAndConfirm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 40 {
		r.run(t, fmt.Sprintf("r%d", i), 1, 1)
	}
	log := newLarge(r.hot, runlog.Extent{Bytes: 1 << 30, End: 100_000, FileBytes: 8 << 20})
	require.Error(t, r.sealer(log, unconfirmed{r.store}, pastAll).Sweep(t.Context()))
	run := subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: "r0"}
	left, err := r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
	require.NoError(t, err)
	require.Empty(t, left)
	var logged bytes.Buffer
	over := cold.NewLog(r.hot, r.store, pastAll, cold.NewFaults(slog.New(slog.NewTextHandler(&logged, nil))))
	r.mark(t, run)
	frames, err := over.Remaining(t.Context(), r.markOf(t, run))
	require.NoError(t, err)
	require.NotEmpty(t, frames, "the steps of the erasure need the frames")
	require.NoError(t, r.sealer(r.hot, r.store, pastAll).Sweep(t.Context()))
	frames, err = over.Remaining(t.Context(), r.markOf(t, run))
	require.NoError(t, err)
	require.NotEmpty(t, frames, "another sealer leaves the object to the erasure")
	require.NoError(t, over.Purge(t.Context(), r.markOf(t, run)))
	require.Equal(t, 1, strings.Count(logged.String(), "may stay in a file of the NATS server"))
}

// A store that is doubted keeps sealed runs from being erased.
func TestLog_ErasesNoSealedRunWhileTheStoreIsDoubted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1, 1)
	r.sweep(t)
	r.mark(t, run)
	over := cold.NewLog(r.hot, r.store, pastAll, cold.NewFaults(slog.New(slog.DiscardHandler)))
	over.Doubt()
	require.ErrorIs(t, over.Purge(t.Context(), r.markOf(t, run)), runlog.ErrUnavailable)
	_, _, err := r.store.Blocks(t.Context(), run)
	require.NoError(t, err)
	over.Trust()
	require.NoError(t, over.Purge(t.Context(), r.markOf(t, run)))
	_, _, err = r.store.Blocks(t.Context(), run)
	require.ErrorIs(t, err, cold.ErrDeleted)
}
