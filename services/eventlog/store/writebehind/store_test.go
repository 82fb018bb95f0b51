package writebehind_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
	"waybill.dev/waybill/services/eventlog/store/storetest"
	"waybill.dev/waybill/services/eventlog/store/writebehind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openFile(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(t.TempDir(), "eventlog.db")}, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	return s
}

func serve(t *testing.T, s *writebehind.Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Write(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// The contract of the store below holds in three modes: commit on every batch, commit in the
// background, and no cache.
func TestStore_KeepsTheContract(t *testing.T) {
	t.Parallel()
	small := writebehind.Config{Linger: time.Microsecond, PendingBytes: 1, RecentBytes: 1}
	for name, cfg := range map[string]writebehind.Config{
		"as configured":  writebehind.DefaultConfig(),
		"without memory": small,
	} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, running %t", name, running), func(t *testing.T) {
				t.Parallel()
				storetest.Run(t, func(t *testing.T) store.Store {
					s := writebehind.New(openFile(t), cfg)
					t.Cleanup(func() { require.NoError(t, s.Close()) })
					if running {
						serve(t, s)
					}
					return s
				})
			})
		}
	}
}

// slow is a store below that commits when the test lets it.
type slow struct {
	store.Store // unimplemented methods are not called by these tests
	mu          sync.Mutex
	err         error
	batches     []store.Batch
	gate        chan struct{} // each Apply receives one value; nil means no wait
}

func (s *slow) Apply(_ context.Context, b store.Batch) error {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.batches = append(s.batches, b)
	return nil
}

func (s *slow) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *slow) committed() []store.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches
}

func (s *slow) Run(context.Context, store.Key) (store.Run, error) {
	return store.Run{}, store.ErrNotFound
}

func (s *slow) Frames(context.Context, store.Key, int, int) ([]store.Frame, error) { return nil, nil }

func (s *slow) List(context.Context, store.Query) ([]store.Run, error) {
	var out []store.Run
	for _, b := range s.committed() {
		out = append(out, b.Runs...)
	}
	return out, nil
}

func (s *slow) Tail(context.Context) (store.Tail, error) { return store.Tail{}, nil }

func (s *slow) Rebuild(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.batches = nil, nil
	return nil
}

func (s *slow) Close() error { return nil }

var key = store.Key{Tenant: "acme", RunID: "r1"}

// step is the batch of a frame that holds event n.
func step(n int) store.Batch {
	return stepOf(key, n)
}

func stepOf(key store.Key, n int) store.Batch {
	return store.Batch{
		Runs: []store.Run{{Key: key, Status: wire.StatusRunning, Head: n, Pos: uint64(n) + 1, New: n == 0}}, //nolint:gosec // G115: a small number
		Frames: []store.Frame{{
			Key:   key,
			First: n,
			Last:  n,
			Types: []wire.EventType{wire.EventLogAppended},
			Body:  fmt.Appendf(nil, `[{"sequence":%d}]`, n),
		}},
		Marks:         []store.Mark{{Key: key, Name: store.MarkKind, Value: fmt.Sprint(n)}},
		Substitutions: []store.Substitution{{Key: key, Sequence: n}},
		Tail:          store.Tail{Pos: uint64(n) + 1, Hash: fmt.Sprint(n)}, //nolint:gosec // G115: a small number
	}
}

func TestApply_IsReadableAtOnceAndCommittedInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		below := &slow{}
		s := writebehind.New(below, writebehind.DefaultConfig())
		stop := serve(t, s)
		synctest.Wait()
		for n := range 3 {
			require.NoError(t, s.Apply(t.Context(), step(n)))
			row, err := s.Run(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, n, row.Head)
			tail, err := s.Tail(t.Context())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(n), tail.Hash)
		}
		require.Empty(t, below.committed())
		frames, err := s.Frames(t.Context(), key, 1, 10)
		require.NoError(t, err)
		require.Len(t, frames, 2)

		stop()
		require.Len(t, below.committed(), 1, "three batches, one commit")
		b := below.committed()[0]
		require.Len(t, b.Runs, 1)
		require.Equal(t, 2, b.Runs[0].Head)
		require.True(t, b.Runs[0].New, "the row is new to the store below")
		require.Len(t, b.Frames, 3)
		require.Len(t, b.Marks, 3)
		require.Len(t, b.Substitutions, 3)
		require.Equal(t, "2", b.Tail.Hash)
	})
}

func TestList_WaitsForEarlierBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := writebehind.DefaultConfig()
		cfg.Linger = time.Hour
		s := writebehind.New(&slow{}, cfg)
		stop := serve(t, s)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, s.Apply(t.Context(), step(0)))
		rows, err := s.List(t.Context(), store.Query{Limit: 9})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Zero(t, time.Since(began), "a reader skips the linger time")
		stop()
	})
}

// A batch in flight holds only the rows of its own frames, also when it is retried.
// Otherwise a crash would leave a row that is ahead of its frames.
func TestCommit_RetriesTheSameBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		below := &slow{gate: make(chan struct{})}
		s := writebehind.New(below, writebehind.DefaultConfig())
		stop := serve(t, s)
		synctest.Wait()
		require.NoError(t, s.Apply(t.Context(), step(0)))
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock: the commit has begun
		synctest.Wait()
		require.NoError(t, s.Apply(t.Context(), step(1)), "a flush does not block writers")
		below.fail(errors.New("disk full"))
		below.gate <- struct{}{}
		synctest.Wait()
		require.ErrorContains(t, s.Apply(t.Context(), step(2)), "disk full")
		_, err := s.List(t.Context(), store.Query{})
		require.ErrorContains(t, err, "disk full")
		row, err := s.Run(t.Context(), key)
		require.NoError(t, err, "memory serves reads while commits fail")
		require.Equal(t, 1, row.Head)

		below.fail(nil)
		close(below.gate)
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		require.NoError(t, s.Apply(t.Context(), step(2)))
		stop()
		var heads []int
		for _, b := range below.committed() {
			heads = append(heads, b.Runs[0].Head)
			require.Equal(t, b.Runs[0].Head, b.Frames[len(b.Frames)-1].Last)
		}
		require.Equal(t, []int{0, 1, 2}, heads)
	})
}

func TestApply_WaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		below := &slow{gate: make(chan struct{})}
		s := writebehind.New(below, writebehind.Config{Linger: time.Hour, PendingBytes: 1, RecentBytes: 1})
		stop := serve(t, s)
		synctest.Wait()
		require.NoError(t, s.Apply(t.Context(), step(0)))
		applied := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { applied <- s.Apply(ctx, step(1)) }()
		synctest.Wait()
		require.Empty(t, applied)
		cancel()
		require.ErrorIs(t, <-applied, context.Canceled)
		close(below.gate)
		require.NoError(t, s.Apply(t.Context(), step(1)))
		stop()
	})
}

func TestRebuild_DropsPendingBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		below := &slow{}
		s := writebehind.New(below, writebehind.DefaultConfig())
		stop := serve(t, s)
		synctest.Wait()
		below.fail(store.ErrDamaged)
		require.NoError(t, s.Apply(t.Context(), step(0)))
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		_, err := s.Tail(t.Context())
		require.ErrorIs(t, err, store.ErrDamaged, "no batch is applied on top of the lost ones")
		require.NoError(t, s.Rebuild(t.Context()))
		tail, err := s.Tail(t.Context())
		require.NoError(t, err)
		require.Zero(t, tail)
		_, err = s.Run(t.Context(), key)
		require.ErrorIs(t, err, store.ErrNotFound)
		stop()
		require.Empty(t, below.committed())
	})
}

// Reads while batches are applied, committed and evicted return every frame applied before,
// once and in order.
func TestFrames_HaveNoGapsDuringCommits(t *testing.T) {
	t.Parallel()
	const events = 400
	s := writebehind.New(openFile(t), writebehind.Config{
		Linger:       time.Microsecond,
		PendingBytes: 4 << 10,
		RecentBytes:  2 << 10,
	})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	serve(t, s)
	other := store.Key{Tenant: "acme", RunID: "r2"}
	for n := range events {
		require.NoError(t, s.Apply(t.Context(), step(n)))
		if n%5 == 0 { // evicts the other run from memory
			require.NoError(t, s.Apply(t.Context(), stepOf(other, n/5)))
		}
		from := max(0, n-n%50)
		frames, err := s.Frames(t.Context(), key, from, events)
		require.NoError(t, err)
		require.Len(t, frames, n-from+1, "from %d at %d", from, n)
		for i, f := range frames {
			require.Equal(t, from+i, f.First)
		}
	}
}
