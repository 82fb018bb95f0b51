package ingest_test

import (
	"context"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsdtest.LeftBehind()...) }

var quiet = slog.New(slog.DiscardHandler)

// patience bounds every wait; a correct ingester needs milliseconds, or a few
// backoffs.
const patience = 20 * time.Second

// rig is an ingester over a SQLite file of its own.
type rig struct {
	path    string
	store   *sqlite.Store
	faults  *faultyStore
	hub     *hub.Hub
	ing     *ingest.Ingester
	emptied atomic.Int64
	close   func()
}

func newRig(t testing.TB, log *memory.Log) *rig {
	t.Helper()
	return openRig(t, log, filepath.Join(t.TempDir(), "eventlog.db"))
}

func openRig(t testing.TB, log *memory.Log, path string) *rig {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, time.Now)
	require.NoError(t, err)
	r := &rig{path: path, store: s, hub: hub.New(16), faults: &faultyStore{Store: s}}
	r.close = sync.OnceFunc(func() { require.NoError(t, s.Close()) })
	t.Cleanup(r.close)
	r.ing = ingest.New(log, r.faults, r.hub, 1<<20, func() { r.emptied.Add(1) }, nil, quiet)
	return r
}

// run runs the ingester until the test ends or stop is called.
func (r *rig) run(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ing.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// caughtUp waits until the whole log is applied.
func (r *rig) caughtUp(t testing.TB, log *memory.Log) {
	t.Helper()
	end, err := log.End(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.ing.Wait(within(t), end), "applied: %+v", r.ing.Stats())
}

// same checks that the store returns the runs as their writers wrote them.
func (r *rig) same(t testing.TB, writers ...*logtest.Writer) {
	t.Helper()
	for _, w := range writers {
		key := project.Key(w.Run())
		row, err := r.store.Run(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, w.Head.Pos, row.Pos)
		require.Empty(t, row.Damage)
		run, err := project.Load(t.Context(), r.store, row)
		require.NoError(t, err)
		require.Equal(t, w.Snapshot(), string(run.State.SnapshotJSON()))
		next := 0
		frames, err := r.store.Frames(t.Context(), key, 0, math.MaxInt)
		require.NoError(t, err)
		for _, f := range frames {
			require.Equal(t, next, f.First, "rows are contiguous")
			next = f.Last + 1
		}
		require.Equal(t, len(w.Events), next)
	}
}

// eventually polls until check is true.
func eventually(t testing.TB, check func() bool, what string) {
	t.Helper()
	require.Eventually(t, check, patience, time.Millisecond, what)
}

// position returns the store's tail.
func (r *rig) tail(t testing.TB) store.Tail {
	t.Helper()
	tail, err := r.store.Tail(t.Context())
	require.NoError(t, err)
	return tail
}
