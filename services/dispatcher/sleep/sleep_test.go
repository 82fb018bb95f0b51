package sleep_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/sleep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waker notes who was woken, and when.
type waker struct {
	mu    sync.Mutex
	began time.Time
	woken []string
	fail  int // so many wakes fail first
	lost  func(r subject.Run) error
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

func (w *waker) WakeLost(_ context.Context, r subject.Run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, fmt.Sprintf("%s lost after %s", r.RunID, time.Since(w.began)))
	if w.lost != nil {
		return w.lost(r)
	}
	return nil
}

// index is what the read model says is overdue.
type index func(before time.Time, after sleep.Timer, limit int) ([]sleep.Timer, error)

func (i index) Due(_ context.Context, before time.Time, after sleep.Timer, limit int) ([]sleep.Timer, error) {
	if i == nil {
		return nil, nil
	}
	return i(before, after, limit)
}

func timers(ids ...string) []sleep.Timer {
	var out []sleep.Timer
	for n, id := range ids {
		out = append(out, sleep.Timer{Run: run(id), DueMs: int64(n)})
	}
	return out
}

func run(id string) subject.Run { return subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id} }

func head(pos uint64) frame.Head { return frame.Head{Pos: pos} }

// watch runs a watch for a time and gives who was woken.
func watch(t *testing.T, w *waker, i index, d time.Duration, do func(w *sleep.Watch)) []string {
	t.Helper()
	s := sleep.New(sleep.Config{SweepEvery: 10 * time.Second, Grace: 2 * time.Second}, i, time.Now, slog.New(slog.DiscardHandler))
	s.Bind(w)
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
		got := watch(t, &waker{}, nil, 9*time.Second, func(s *sleep.Watch) {
			s.Until(run("late"), head(1), now.Add(5*time.Second))
			s.Until(run("later than the watch"), head(2), now.Add(time.Hour))
			s.Until(run("early"), head(3), now.Add(time.Second))
			s.Until(run("past"), head(4), now.Add(-time.Second))
			synctest.Wait()
		})
		require.Equal(t, []string{"past@4 after 0s", "early@3 after 1s", "late@1 after 5s"}, got)
	})
}

func TestUntil_AnEarlierInstantReplacesALaterOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		got := watch(t, &waker{}, nil, 9*time.Second, func(s *sleep.Watch) {
			s.Until(run("a"), head(1), now.Add(5*time.Second))
			s.Until(run("a"), head(2), now.Add(time.Second))
			require.Equal(t, 1, s.Sleeping())
		})
		require.Equal(t, []string{"a@2 after 1s"}, got, "a run sleeps once")
	})
}

func TestForget_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		const many = 1000
		got := watch(t, &waker{}, nil, 9*time.Second, func(s *sleep.Watch) {
			for n := range many {
				s.Until(run(fmt.Sprint(n)), head(1), now.Add(time.Duration(n)*time.Millisecond+time.Second))
			}
			require.Equal(t, many, s.Sleeping())
			for n := range many {
				if n != 500 {
					s.Forget("acme", fmt.Sprint(n))
				}
			}
			s.Forget("beta", "500")
			s.Forget("acme", "nobody")
			require.Equal(t, 1, s.Sleeping(), "a cancelled run takes no memory until it would have woken")
		})
		require.Equal(t, []string{"500@1 after 1.5s"}, got)
	})
}

func TestWake_IsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		got := watch(t, &waker{fail: 2}, nil, 9*time.Second, func(s *sleep.Watch) {
			s.Until(run("a"), head(7), now.Add(time.Second))
		})
		require.Equal(t, []string{"a@7 after 3s"}, got)
	})
}

func TestSweep_WakesRunsThatNobodyWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asked := 0
		overdue := index(func(before time.Time, _ sleep.Timer, limit int) ([]sleep.Timer, error) {
			asked++
			require.Positive(t, limit)
			require.Equal(t, time.Duration(asked)*10*time.Second-2*time.Second, before.Sub(began), "overdue by the grace")
			switch asked {
			case 1:
				return nil, errors.New("read model is behind")
			case 2:
				return timers("gone", "a", "b"), nil
			default:
				return nil, nil
			}
		})
		w := &waker{lost: func(r subject.Run) error {
			if r.RunID == "gone" {
				return runlog.ErrNotFound
			}
			return runlog.ErrUnavailable
		}}
		got := watch(t, w, overdue, 39*time.Second, func(*sleep.Watch) {})
		require.Equal(t, []string{"gone lost after 20s", "a lost after 20s", "b lost after 20s"}, got, "one that fails keeps none of the others waiting")
		require.Equal(t, 3, asked)
	})
}

// Runs that cannot be woken stay overdue: a damaged one until somebody mends it.
func TestSweep_ComesToRunsBehindManyThatAreNotWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []sleep.Timer
		for n := range 1000 {
			all = append(all, sleep.Timer{Run: run(fmt.Sprint(n)), DueMs: int64(n)})
		}
		overdue := index(func(_ time.Time, after sleep.Timer, limit int) ([]sleep.Timer, error) {
			from := 0
			if after != (sleep.Timer{}) {
				from = 1 + slices.Index(all, after)
			}
			return all[from:min(len(all), from+limit)], nil
		})
		got := watch(t, &waker{}, overdue, 41*time.Second, func(*sleep.Watch) {})
		require.Len(t, got, len(all), "each of them once")
		require.Equal(t, "999 lost after 40s", got[999])
	})
}

func TestSweep_LeavesARunAloneForAWhileThatItLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := true
		w := &waker{lost: func(subject.Run) error {
			if fails {
				fails = false
				return runlog.ErrUnavailable
			}
			return nil
		}}
		overdue := index(func(time.Time, sleep.Timer, int) ([]sleep.Timer, error) { return timers("a"), nil })
		got := watch(t, w, overdue, 75*time.Second, func(*sleep.Watch) {})
		require.Equal(t, []string{"a lost after 10s", "a lost after 20s", "a lost after 50s"}, got, "what failed is tried again at once")
	})
}
