package timers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/timers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waker records the woken runs and the times.
type waker struct {
	mu    sync.Mutex
	began time.Time
	woken []string
	fail  int // so many wakes fail first
	lost  func(r subject.Run) (bool, error)
}

func (w *waker) Wake(_ context.Context, r subject.Run, head frame.Head) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail > 0 {
		w.fail--
		return runlog.ErrUnavailable
	}
	w.woken = append(w.woken, fmt.Sprintf("%s@%d after %s", r.RunID, head.Pos, time.Since(w.began)))
	return nil
}

func (w *waker) WakeLost(_ context.Context, r subject.Run, _ time.Time) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, fmt.Sprintf("%s lost after %s", r.RunID, time.Since(w.began)))
	if w.lost != nil {
		return w.lost(r)
	}
	return true, nil
}

// index returns the overdue timers of the read model.
type index func(before time.Time, after timers.DueRun, limit int) ([]timers.DueRun, error)

func (i index) Due(_ context.Context, before time.Time, after timers.DueRun, limit int) ([]timers.DueRun, error) {
	if i == nil {
		return nil, nil
	}
	return i(before, after, limit)
}

func dueTimers(ids ...string) []timers.DueRun {
	var out []timers.DueRun
	for n, id := range ids {
		out = append(out, timers.DueRun{Run: run(id), DueMs: int64(n)})
	}
	return out
}

func run(id string) subject.Run { return subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id} }

func head(pos uint64) frame.Head { return frame.Head{Pos: pos} }

// newWatch returns the watch of a process.
func newWatch(process string, sweepEvery time.Duration, i timers.Index, w timers.Waker) *timers.Watch {
	s := timers.New(timers.Config{
		SweepEvery: sweepEvery,
		Grace:      100 * time.Millisecond,
		Process:    func() string { return process },
	}, i, time.Now, slog.New(slog.DiscardHandler))
	s.Bind(w)
	return s
}

// watch runs a watch for a time and returns the woken runs.
func watch(t *testing.T, w *waker, i index, d time.Duration, do func(w *timers.Watch)) []string {
	t.Helper()
	s := newWatch("d-0", 10*time.Second, i, w)
	w.began = time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	do(s)
	require.ErrorIs(t, <-done, context.DeadlineExceeded)
	return w.woken
}

func TestUntil_WakesInTheOrderOfTheInstants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		got := watch(t, &waker{}, nil, 9*time.Second, func(s *timers.Watch) {
			s.Schedule(run("late"), head(1), now.Add(5*time.Second))
			s.Schedule(run("later than the watch"), head(2), now.Add(time.Hour))
			s.Schedule(run("early"), head(3), now.Add(time.Second))
			s.Schedule(run("past"), head(4), now.Add(-time.Second))
			synctest.Wait()
		})
		require.Equal(t, []string{"past@4 after 0s", "early@3 after 1s", "late@1 after 5s"}, got)
	})
}

func TestUntil_AnEarlierInstantReplacesALaterOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		got := watch(t, &waker{}, nil, 9*time.Second, func(s *timers.Watch) {
			s.Schedule(run("a"), head(1), now.Add(5*time.Second))
			s.Schedule(run("a"), head(2), now.Add(time.Second))
			require.Equal(t, 1, s.Count())
		})
		require.Equal(t, []string{"a@2 after 1s"}, got, "a run sleeps once")
	})
}

func TestForget_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		const many = 1000
		got := watch(t, &waker{}, nil, 9*time.Second, func(s *timers.Watch) {
			for n := range many {
				s.Schedule(run(fmt.Sprint(n)), head(1), now.Add(time.Duration(n)*time.Millisecond+time.Second))
			}
			require.Equal(t, many, s.Count())
			for n := range many {
				if n != 500 {
					s.Cancel("acme", fmt.Sprint(n))
				}
			}
			s.Cancel("beta", "500")
			s.Cancel("acme", "unknown")
			require.Equal(t, 1, s.Count(), "a cancelled run takes no memory until it would have woken")
		})
		require.Equal(t, []string{"500@1 after 1.5s"}, got)
	})
}

func TestWake_IsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		got := watch(t, &waker{fail: 2}, nil, 9*time.Second, func(s *timers.Watch) {
			s.Schedule(run("a"), head(7), now.Add(time.Second))
		})
		require.Equal(t, []string{"a@7 after 3s"}, got)
	})
}

func TestSweep_WakesRunsThatNoProcessWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		overdue := index(func(_ time.Time, after timers.DueRun, limit int) ([]timers.DueRun, error) {
			require.Positive(t, limit)
			if asked++; asked == 1 {
				return nil, errors.New("read model is behind")
			}
			if after != (timers.DueRun{}) {
				return nil, nil
			}
			return dueTimers("gone", "a", "b"), nil
		})
		w := &waker{lost: func(r subject.Run) (bool, error) {
			if r.RunID == "gone" {
				return false, runlog.ErrNotFound
			}
			return false, runlog.ErrUnavailable
		}}
		got := watch(t, w, overdue, 9*time.Second, func(*timers.Watch) {})
		require.ElementsMatch(t, []string{
			"gone lost after 250ms", "a lost after 250ms", "b lost after 250ms",
		}, got, "one that fails keeps none of the others waiting")
		require.Equal(t, 3, asked)
	})
}

// many are overdue timers of an instant each, and the index that has them.
func many(n int) ([]timers.DueRun, index) {
	all := make([]timers.DueRun, n)
	for i := range all {
		all[i] = timers.DueRun{Run: run(fmt.Sprint(i)), DueMs: int64(i)}
	}
	return all, func(_ time.Time, after timers.DueRun, limit int) ([]timers.DueRun, error) {
		from := 0
		if after != (timers.DueRun{}) {
			from = min(1+int(after.DueMs), len(all))
		}
		return all[from:min(len(all), from+limit)], nil
	}
}

func TestSweep_WakesAllThatAreOverdue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, overdue := many(20_000)
		got := watch(t, &waker{}, overdue, 11*time.Second, func(*timers.Watch) {})
		require.Len(t, got, len(all))
		slices.Sort(got)
		require.Len(t, slices.Compact(got), len(all), "each of them once")
		require.Contains(t, got, "19999 lost after 0s")
	})
}

func TestSweep_WakesInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const latency = 10 * time.Millisecond
		_, overdue := many(10_000)
		w := &slow{latency: latency}
		s := newWatch("d-0", time.Second, overdue, w)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, s.Run(ctx), context.DeadlineExceeded)
		require.EqualValues(t, 10_000, w.woken.Load(), "5,000 a second, at 10 ms for each")
		require.LessOrEqual(t, w.most.Load(), int64(128))
	})
}

func TestUntil_WakesInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &slow{latency: 10 * time.Millisecond}
		s := newWatch("d-0", time.Hour, index(nil), w)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for n := range 10_000 {
			s.Schedule(run(fmt.Sprint(n)), head(1), time.Now().Add(time.Second))
		}
		require.ErrorIs(t, s.Run(ctx), context.DeadlineExceeded)
		require.EqualValues(t, 10_000, w.woken.Load())
		require.LessOrEqual(t, w.most.Load(), int64(128))
	})
}

// slow is a waker with latency.
type slow struct {
	latency              time.Duration
	woken, at, most, all atomic.Int64
	// awake are the runs that were woken, by all who share it.
	awake *sync.Map
}

func (s *slow) Wake(context.Context, subject.Run, frame.Head) error {
	at := s.at.Add(1)
	defer s.at.Add(-1)
	for most := s.most.Load(); at > most && !s.most.CompareAndSwap(most, at); most = s.most.Load() {
	}
	time.Sleep(s.latency) //nolint:forbidigo // the bubble's clock
	s.woken.Add(1)
	return nil
}

func (s *slow) WakeLost(ctx context.Context, r subject.Run, _ time.Time) (bool, error) {
	s.all.Add(1)
	if s.awake != nil {
		if _, there := s.awake.LoadOrStore(r.RunID, true); there {
			return false, nil
		}
	}
	return true, s.Wake(ctx, r, frame.Head{})
}

// Several dispatchers share the work: few runs are read by more than one.
func TestSweep_IsSharedByDispatchers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dispatchers, count = 4, 16_000
		_, overdue := many(count)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var (
			wakers [dispatchers]*slow
			awake  sync.Map
			wg     sync.WaitGroup
		)
		for i := range wakers {
			wakers[i] = &slow{latency: 10 * time.Millisecond, awake: &awake}
			s := newWatch(fmt.Sprint("d-", i), time.Second, overdue, wakers[i])
			wg.Go(func() { _ = s.Run(ctx) })
		}
		wg.Wait()
		woken, looks := int64(0), int64(0)
		for _, w := range wakers {
			require.Greater(t, w.woken.Load(), int64(count/dispatchers/4), "each has its share")
			woken, looks = woken+w.woken.Load(), looks+w.all.Load()
		}
		require.EqualValues(t, count, woken)
		require.Less(t, looks, int64(2*count))
	})
}

func TestSweep_SkipsARecentlyCheckedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := true
		w := &waker{lost: func(subject.Run) (bool, error) {
			if fails {
				fails = false
				return false, runlog.ErrUnavailable
			}
			return true, nil
		}}
		overdue := index(func(_ time.Time, after timers.DueRun, _ int) ([]timers.DueRun, error) {
			if after != (timers.DueRun{}) {
				return nil, nil
			}
			return dueTimers("a"), nil
		})
		got := watch(t, w, overdue, 75*time.Second, func(*timers.Watch) {})
		require.Equal(t, []string{
			"a lost after 0s", "a lost after 10s", "a lost after 40s", "a lost after 1m10s",
		}, got, "what failed is tried again at once")
	})
}
