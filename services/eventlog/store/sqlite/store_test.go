package sqlite_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
	"waybill.dev/waybill/services/eventlog/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Config{Path: path}, quiet, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore_KeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "eventlog.db")) })
}

// run makes the row and the frames of a run of some events.
func run(n, events int) (store.Run, []store.Frame) {
	key := store.Key{Tenant: "acme", RunID: fmt.Sprintf("01JRUN%020d", n)}
	r := store.Run{
		Key: key, WorkflowID: "order-fulfilment", Status: wire.StatusRunning, CreatedAt: "2026-03-01T12:00:00.000Z",
		StartedAt: "2026-03-01T12:00:00.001Z", CompletedAt: "2026-03-01T12:00:00.009Z", ErrorCode: "provider_unavailable",
		Tags: []string{"nightly", "team:search"}, Head: events - 1, Pos: uint64(n)*2 + 2, New: true,
		Hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", DueMs: 1772366400000,
	}
	frames := []store.Frame{{Key: key, First: store.RecordFirst, Last: store.RecordFirst, Body: []byte(`{"runId":"r"}`)}}
	for i := range events {
		frames = append(frames, store.Frame{
			Key:   key,
			First: i,
			Last:  i,
			Types: []wire.EventType{wire.EventLogAppended},
			Body:  fmt.Appendf(nil, `[{"sequence":%d}]`, i),
		})
	}
	return r, frames
}

// fill stores runs, one batch each.
func fill(t testing.TB, s *sqlite.Store, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		r, frames := run(n, 5)
		require.NoError(t, s.Apply(context.Background(), store.Batch{
			Runs: []store.Run{r}, Frames: frames, Tail: store.Tail{Pos: uint64(n)*2 + 2, Hash: "h"},
		}))
	}
}

// whole checks that the store holds exactly the runs of its tail, each complete.
func whole(t testing.TB, s *sqlite.Store) (runs int) {
	t.Helper()
	tail, err := s.Tail(context.Background())
	require.NoError(t, err)
	runs = int(tail.Pos / 2)
	for n := range runs {
		want, frames := run(n, 5)
		want.New = false
		got, err := s.Run(context.Background(), want.Key)
		require.NoError(t, err)
		require.Equal(t, want, got)
		stored, err := s.Frames(context.Background(), want.Key, store.RecordFirst, 100)
		require.NoError(t, err)
		require.Equal(t, frames, stored)
	}
	next, _ := run(runs, 5)
	_, err = s.Run(context.Background(), next.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	return runs
}

func TestOpen_FindsWhatWasThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "er", "event log?#%.db")
	s := open(t, path)
	fill(t, s, 0, 10)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing twice is fine")
	s = open(t, path)
	require.Equal(t, 10, whole(t, s))
}

func TestClosedStore_Answers(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "eventlog.db"))
	require.NoError(t, s.Close())
	_, err := s.Run(t.Context(), store.Key{Tenant: "acme", RunID: "r"})
	require.ErrorContains(t, err, "closed")
	require.NotErrorIs(t, err, store.ErrDamaged)
}

func TestOpen_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := sqlite.Open(t.Context(), sqlite.Config{}, quiet, time.Now)
	require.ErrorContains(t, err, "path is empty")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(file, "eventlog.db")}, quiet, time.Now)
	require.ErrorContains(t, err, "not a directory")
}

func TestOpen_LeavesAFileItCannotOpenAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "eventlog.db")
	require.NoError(t, os.Mkdir(path, 0o750)) // a folder in the place of the file
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, time.Now)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrDamaged)
	require.DirExists(t, path)
}

// A crash is a copy of the files at an arbitrary moment: what a process that is
// killed leaves behind. Whatever batch was under way, the copy opens at the end
// of a batch, with everything before it.
func TestOpen_AfterACrashFindsWholeBatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "eventlog.db")
	s := open(t, path)
	fill(t, s, 0, 20)

	var wg sync.WaitGroup
	wg.Go(func() { fill(t, s, 20, 220) })
	var copies []string
	for i := range 8 {
		crash := filepath.Join(dir, fmt.Sprintf("crash-%d", i), "eventlog.db")
		copyFile(t, path, crash) // first the file: a checkpoint in between would be the only way to tear it
		copyFile(t, path+"-wal", crash+"-wal")
		copies = append(copies, crash)
	}
	wg.Wait()
	last := 20
	for _, crash := range copies {
		runs := whole(t, open(t, crash))
		require.GreaterOrEqual(t, runs, last, "a later crash loses nothing of an earlier one")
		last = runs
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o750))
	require.NoError(t, os.WriteFile(to, b, 0o600))
}

// A torn write-ahead log is what a power cut leaves: its end is missing. The
// store then opens at an earlier batch.
func TestOpen_AfterATornWALFindsWholeBatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "eventlog.db")
	s := open(t, path)
	fill(t, s, 0, 50)
	wal, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	for i, keep := range []int{len(wal) - 1, len(wal) * 3 / 4, len(wal) / 2} {
		crash := filepath.Join(dir, fmt.Sprintf("torn-%d", i), "eventlog.db")
		copyFile(t, path, crash)
		require.NoError(t, os.WriteFile(crash+"-wal", wal[:keep], 0o600))
		runs := whole(t, open(t, crash))
		require.Less(t, runs, 50)
	}
}

func TestApply_FailsAsAWhole(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "eventlog.db"))
	fill(t, s, 0, 3)
	r, frames := run(3, 5)
	frames[4].Body = nil // the schema refuses it
	batch := store.Batch{Runs: []store.Run{r}, Frames: frames, Tail: store.Tail{Pos: 8}}
	require.Error(t, s.Apply(t.Context(), batch))
	require.Equal(t, 3, whole(t, s))
	fill(t, s, 3, 4)
	require.Equal(t, 4, whole(t, s))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Apply(ctx, batch), context.Canceled)
}

func TestRow_IsSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	s := open(t, path)
	const runs = 2000
	for n := range runs {
		r, _ := run(n, 0)
		require.NoError(t, s.Apply(t.Context(), store.Batch{Runs: []store.Run{r}, Tail: store.Tail{Pos: 1}}))
	}
	require.NoError(t, s.Close()) // folds the WAL back
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size()/runs, int64(1100), "bytes of a run with its places in all indexes")
}

func TestReads_RunConcurrentlyWithTheWriter(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "eventlog.db"))
	fill(t, s, 0, 1)
	first, _ := run(0, 5)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Run(context.Background(), first.Key); err != nil {
					t.Error(err)
					return
				}
				if _, err := s.List(context.Background(), store.Query{Tenant: "acme", Limit: 50}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	fill(t, s, 1, 100)
	close(stop)
	wg.Wait()
	require.Equal(t, 100, whole(t, s))
}
