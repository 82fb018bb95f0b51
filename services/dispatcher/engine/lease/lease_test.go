package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const duration = 3 * time.Second

// store is a bucket that can be out of reach.
type store struct {
	kv.Store
	down *atomic.Bool
}

func (s store) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if s.down.Load() {
		return 0, kv.ErrUnavailable
	}
	return s.Store.Update(ctx, key, value, revision)
}

// dispatcher is a process with a lease.
type dispatcher struct {
	*lease.Table
	down atomic.Bool
	stop context.CancelFunc
	done chan struct{}

	mu       sync.Mutex // guards what follows
	lost     []string
	orphaned []string
	failing  bool
	logged   strings.Builder
}

// Write implements io.Writer for the log.
func (d *dispatcher) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.logged.Write(line)
}

func (d *dispatcher) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.logged.String()
}

func (d *dispatcher) Lost(process string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = append(d.lost, process)
}

func (d *dispatcher) Orphaned(_ context.Context, process string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failing {
		return errors.New("the read model is away")
	}
	d.orphaned = append(d.orphaned, process)
	return nil
}

// fail makes Orphaned return an error.
func (d *dispatcher) fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = true
}

func (d *dispatcher) took() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.orphaned...)
}

// kill ends a process without a release.
func (d *dispatcher) kill() {
	d.stop()
	<-d.done
}

func start(t *testing.T, bucket kv.Store, name string, cfg lease.Config) *dispatcher {
	t.Helper()
	d := &dispatcher{done: make(chan struct{})}
	n := 0
	cfg.NewID = func() string { n++; return fmt.Sprint(name, "-", n) }
	d.Table = lease.New(cfg, store{bucket, &d.down}, time.Now, slog.New(slog.NewTextHandler(d, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	d.stop = cancel
	require.NoError(t, d.Open(ctx))
	go func() { defer close(d.done); _ = d.Run(ctx, d) }()
	t.Cleanup(d.kill)
	return d
}

func alive(t *testing.T, by *dispatcher, process string) bool {
	t.Helper()
	ok, err := by.Alive(t.Context(), process)
	require.NoError(t, err)
	return ok
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

func TestTable_ExpiresASilentProcessAfterItsOwnDuration(t *testing.T) {
	t.Parallel()
	for name, mine := range map[string]time.Duration{"equal": duration, "shorter": duration / 3, "longer": 5 * duration} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bucket := memory.New()
				a := start(t, bucket, "a", lease.Config{Duration: duration})
				b := start(t, bucket, "b", lease.Config{Duration: mine})
				pass(10 * duration)
				require.True(t, alive(t, b, "a-1"))
				require.True(t, alive(t, a, "b-1"))
				a.kill()
				pass(duration - duration/3)
				require.True(t, alive(t, b, "a-1"), "its duration counts, not the observer's")
				pass(duration/3 + 2*mine)
				require.False(t, alive(t, b, "a-1"))
				require.Equal(t, []string{"a-1"}, b.took())
			})
		})
	}
}

// A process that was expired cannot renew: it learns that it lost its runs, and gets a new id.
func TestTable_LosesALeaseThatAnotherExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		a := start(t, bucket, "a", lease.Config{Duration: duration})
		b := start(t, bucket, "b", lease.Config{Duration: duration})
		pass(duration)
		a.down.Store(true)
		pass(duration)
		require.False(t, a.Valid(), "it must not act before another one may take over")
		waiting := make(chan error, 1)
		go func() { waiting <- a.Await(t.Context(), "a-1") }()
		pass(2 * duration)
		require.False(t, alive(t, b, "a-1"))
		a.down.Store(false)
		pass(duration)
		require.Equal(t, []string{"a-1"}, a.lost)
		require.Equal(t, "a-2", a.Process())
		require.ErrorIs(t, <-waiting, lease.ErrLost)
		require.NoError(t, a.Await(t.Context(), "a-2"))
		require.True(t, alive(t, b, "a-2"))
	})
}

// No lease expires during an outage of the store.
func TestTable_ExpiresNoLeaseInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		a := start(t, bucket, "a", lease.Config{Duration: duration})
		b := start(t, bucket, "b", lease.Config{Duration: duration})
		pass(duration)
		for range 3 {
			a.down.Store(true)
			b.down.Store(true)
			pass(5 * duration)
			a.down.Store(false)
			b.down.Store(false)
			pass(5 * duration)
		}
		require.Empty(t, a.lost)
		require.Empty(t, b.lost)
		require.Equal(t, "a-1", a.Process())
	})
}

func TestTable_ReleasesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		a := start(t, bucket, "a", lease.Config{Duration: duration})
		b := start(t, bucket, "b", lease.Config{Duration: duration})
		pass(duration)
		a.Drain()
		pass(duration)
		require.True(t, alive(t, b, "a-1"), "it finishes its work")
		require.Equal(t, 1, b.Live())
		require.NoError(t, a.Release(t.Context()))
		pass(5 * duration) // the record is deleted in this time
		require.Empty(t, a.lost, "it gave its lease up")
		a.kill()
		synctest.Wait()
		require.False(t, alive(t, b, "a-1"))
		require.False(t, a.Valid())
		pass(duration)
		require.Contains(t, b.took(), "a-1", "what it may have left")
	})
}

// An unknown process may be new: it is not considered dead.
func TestTable_DecidesAboutUnknownProcessesByAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		b := start(t, bucket, "b", lease.Config{Duration: duration})
		require.False(t, alive(t, b, "gone-1"))
		gone := lease.New(lease.Config{
			Duration: duration,
			NewID:    func() string { return "gone-1" },
		}, bucket, time.Now, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, gone.Open(t.Context()), lease.ErrLost, "it cannot come back")
		pass(duration)
		require.Contains(t, b.took(), "gone-1")
	})
}

// The process that expired a lease requeues its runs; if it dies, another one does.
func TestTable_RequeuesRunsAlthoughTheFirstProcessDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		a := start(t, bucket, "a", lease.Config{Duration: duration})
		b := start(t, bucket, "b", lease.Config{Duration: duration})
		pass(duration)
		b.fail()
		a.kill()
		pass(3 * duration)
		require.Empty(t, b.took())
		c := start(t, bucket, "c", lease.Config{Duration: duration})
		b.kill()
		pass(6 * duration)
		require.ElementsMatch(t, []string{"a-1", "b-1"}, c.took())
		_, err := c.Lookup(t.Context(), "a-1")
		require.ErrorIs(t, err, kv.ErrNotFound, "what is done is forgotten")
	})
}

// A host with exclusive use of its data directory does not wait for the lease of its predecessor.
func TestTable_SoleProcessTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		start(t, bucket, "a", lease.Config{Duration: duration}).kill()
		b := start(t, bucket, "b", lease.Config{Duration: duration, Sole: true})
		pass(10 * time.Millisecond)
		require.Equal(t, []string{"a-1"}, b.took())
	})
}

// The log says since when the dead process was silent, not for how long the new one has observed it.
func TestTable_LogsTheSilenceSinceTheLastRenewal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sole bool
		dead time.Duration
		want string
	}{
		"after a restart":      {true, time.Hour, "silent=1h0m0s"},
		"of another machine":   {false, 0, "silent=3"},
		"dead before it began": {false, time.Hour, "silent=1h0m3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bucket := memory.New()
				a := start(t, bucket, "a", lease.Config{Duration: duration})
				renewed, err := a.Lookup(t.Context(), "a-1")
				require.NoError(t, err)
				a.kill()
				pass(tc.dead)
				b := start(t, bucket, "b", lease.Config{Duration: duration, Sole: tc.sole})
				pass(2 * duration)
				require.Contains(t, b.log(), tc.want)
				require.Contains(t, b.log(), "last_renewal="+renewed.Renewed.Format("2006-01-02T15:04:05.000Z07:00"))
			})
		})
	}
}

// Exactly one of a renewal and an expiry happens.
func TestTable_ARenewalAndAnExpiryExcludeEachOther(t *testing.T) {
	t.Parallel()
	bucket := memory.New()
	for i := range 200 {
		id := fmt.Sprint("p", i)
		p := lease.New(lease.Config{
			Duration: duration,
			NewID:    func() string { return id },
		}, bucket, time.Now, slog.New(slog.DiscardHandler))
		other := lease.New(lease.Config{Duration: duration}, bucket, time.Now, slog.New(slog.DiscardHandler))
		var wg sync.WaitGroup
		var opened error
		var live bool
		wg.Go(func() { opened = p.Open(t.Context()) })
		wg.Go(func() { live, _ = other.Alive(t.Context(), id) })
		wg.Wait()
		require.Equal(t, opened == nil, live, "%v", opened)
	}
}
