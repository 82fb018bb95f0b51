package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

func TestRun_RebuildsADamagedStore(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 20)
	r.run(t)
	r.caughtUp(t, log)

	r.faults.fail(&r.faults.applies, fmt.Errorf("%w: page 7", store.ErrDamaged))
	r.faults.fail(&r.faults.rebuilds, errors.New("cannot rename"), nil)
	writers = append(writers, mixed(t, log, "b", 20)...)
	r.caughtUp(t, log)
	r.same(t, writers...)
	require.GreaterOrEqual(t, r.ing.Stats().Rebuilds, int64(1))
	require.GreaterOrEqual(t, r.emptied.Load(), int64(1), "caches are notified")
	eventually(t, func() bool { return r.ing.Ready() == nil }, "ready again")
}

// Another replica has emptied the store, or its database has lost some batches. The log is read
// from the store's position, and cached rows are not used.
func TestRun_FollowsAStoreThatHasMoved(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 20)
	r.run(t)
	r.caughtUp(t, log)

	r.faults.fail(&r.faults.applies, fmt.Errorf("%w: by another", store.ErrMoved))
	writers = append(writers, mixed(t, log, "b", 20)...)
	r.caughtUp(t, log)
	r.same(t, writers...)
	require.Zero(t, r.ing.Stats().Rebuilds)
	require.EqualValues(t, 1, r.emptied.Load(), "caches are notified")
}

// filled is a rig whose store has all of a log.
func filled(t *testing.T, log *memory.Log) (*rig, []*logtest.Writer) {
	t.Helper()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 20)
	r.run(t)
	r.caughtUp(t, log)
	return r, writers
}

// latecomer is a writer that reads the tail before all others.
type latecomer struct{ ingest.Store }

func (latecomer) Tail(context.Context) (store.Tail, error) { return store.Tail{}, nil }

// With several writers, an ingester also reads frames that are already stored. It must publish them,
// because its followers have not seen them, such as the terminal event.
func TestRun_NotifiesFollowersOfAnotherWritersFrames(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r, writers := filled(t, log)
	late := hub.New(16)
	sub := late.Subscribe(project.Key(writers[0].Run()))
	defer sub.Close()
	ing := ingest.New(log, latecomer{r.store}, late, 1<<20, func() {}, nil, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ing.Run(ctx) }()
	_, err := sub.Next(within(t))
	require.ErrorIs(t, err, hub.ErrLagged, "they look at the store")
	require.NoError(t, ing.Wait(within(t), uint64(len(log.Frames()))))
	cancel()
	require.NoError(t, <-done)
	r.same(t, writers...)
	require.Zero(t, ing.Stats().Frames)
}

// A writer that loses the log for a while finds the store further on than it was.
func TestRun_NotifiesFollowersOfFramesAppliedWhileDisconnected(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r, writers := filled(t, log)
	late := hub.New(16)
	sub := late.Subscribe(project.Key(writers[0].Run()))
	defer sub.Close()
	ing := ingest.New(log, r.store, late, 1<<20, func() {}, nil, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ing.Run(ctx) }()
	_, err := sub.Next(within(t))
	require.ErrorIs(t, err, hub.ErrLagged)
	cancel()
	require.NoError(t, <-done)
}

func TestRun_RebuildsOnAReadersRequest(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	r.ing.Rebuild(errors.New("before it runs: nothing to do"))
	writers := mixed(t, log, "a", 20)
	r.run(t)
	r.caughtUp(t, log)
	why := errors.New("a reader found a bad row")
	r.ing.Rebuild(why)
	r.ing.Rebuild(why)
	eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 }, "rebuild begins")
	r.caughtUp(t, log)
	r.same(t, writers...)
	require.Equal(t, int64(1), r.ing.Stats().Rebuilds)
	moved, err := filepath.Glob(r.path + ".damaged-*")
	require.NoError(t, err)
	require.NotEmpty(t, moved)
}

// The file is overwritten while it is open. Whenever SQLite detects it, the store is rebuilt. In
// the end it matches the log.
func TestRun_SurvivesAFileOverwrittenWhileOpen(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 200)
	r.run(t)
	r.caughtUp(t, log)
	for _, path := range []string{r.path, r.path + "-wal"} {
		overwrite(t, path)
	}
	for i := 0; r.ing.Stats().Rebuilds == 0; i++ { // until a page is read that is not in memory
		require.Less(t, i, 2000)
		writers = append(writers, mixed(t, log, fmt.Sprint("b", i), 4)...)
		if _, err := r.store.Run(t.Context(), project.Key(writers[i%200].Run())); errors.Is(err, store.ErrDamaged) {
			r.ing.Rebuild(err)
			eventually(t, func() bool { return r.ing.Stats().Rebuilds > 0 }, "rebuild begins")
		}
	}
	r.caughtUp(t, log)
	r.same(t, writers...)
}

func overwrite(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	garbage := make([]byte, info.Size())
	for i := range garbage {
		garbage[i] = byte(i*7 + 3)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(garbage, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A store that is ahead of the log, or belongs to another log, means that the old log is gone.
func TestRun_RebuildsWhenTheLogIsAnotherOne(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ runs, lost int }{ // of one that is no shorter only the last frame is compared
		"empty": {0, 20}, "shorter": {2, 16}, "as long": {10, 1}, "longer": {30, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := memory.New()
			r := newRig(t, log)
			for i := range 10 {
				logtest.Whole(t, log, fmt.Sprint("old-", i))
			}
			stop := r.run(t)
			r.caughtUp(t, log)
			stop()
			r.close()

			log.Wipe()
			var writers []*logtest.Writer
			for i := range tc.runs {
				writers = append(writers, logtest.Whole(t, log, fmt.Sprint("new-", i)))
			}
			again := openRig(t, log, r.path)
			again.run(t)
			eventually(t, func() bool { return again.ing.Stats().Rebuilds == 1 && again.ing.Ready() == nil }, "rebuilt")
			again.caughtUp(t, log)
			again.same(t, writers...)
			require.EqualValues(t, tc.lost, again.ing.Stats().Lost)
			_, err := again.store.Run(t.Context(), store.Key{Tenant: logtest.Tenant, RunID: "old-0"})
			require.ErrorIs(t, err, store.ErrNotFound)
		})
	}
}

func TestRun_TakesAStoreWhoseLastFrameIsDamagedNow(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 8)
	stop := r.run(t)
	r.caughtUp(t, log)
	stop()
	r.close()
	log.Damage(uint64(len(log.Frames())))
	again := openRig(t, log, r.path)
	again.run(t)
	writers = append(writers, mixed(t, log, "b", 8)...)
	again.caughtUp(t, log)
	again.same(t, writers...)
	require.Zero(t, again.ing.Stats().Rebuilds)
}

// A process killed in the middle of a batch leaves the files unchanged. The next one finds whole
// batches and continues from there.
func TestRun_AfterACrashGoesOnFromWholeBatches(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	r.run(t)
	writers := mixed(t, log, "a", 10)
	r.caughtUp(t, log)

	var wg sync.WaitGroup
	written := make(chan []*logtest.Writer, 1)
	wg.Go(func() { written <- mixed(t, log, "b", 300) })
	var crashes []string
	for i := range 5 {
		crash := filepath.Join(t.TempDir(), fmt.Sprintf("crash-%d.db", i))
		copyFile(t, r.path, crash)
		copyFile(t, r.path+"-wal", crash+"-wal")
		crashes = append(crashes, crash)
	}
	wg.Wait()
	writers = append(writers, <-written...)
	for _, crash := range crashes {
		again := openRig(t, log, crash)
		contiguous(t, again)
		again.run(t)
		again.caughtUp(t, log)
		again.same(t, writers...)
		require.EqualValues(t, len(writers), again.tallied(t).Created, "each frame is counted once")
		require.Zero(t, again.ing.Stats().Rebuilds)
	}
}

// contiguous checks that every run of a file that was just opened is whole.
func contiguous(t *testing.T, r *rig) {
	t.Helper()
	require.Positive(t, r.tail(t).Pos)
	rows, err := r.store.List(t.Context(), store.Query{Tenant: logtest.Tenant, Limit: 10_000})
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		run, err := project.Load(t.Context(), r.store, row)
		require.NoError(t, err)
		require.Equal(t, row, run.Row())
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o600))
}
