package timers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/timers"
)

// world has the log of runs with timers, and the read model's index of them, which is late.
type world struct {
	mu     sync.Mutex
	timers map[timers.DueRun]bool
	// woken are the times at which runs were woken, and by the processes that woke them.
	woken map[string]time.Time
	by    map[string]string
	// held are runs that need no wake, for example because they are quarantined. They stay in the index.
	held map[string]bool
	// looks counts the reads of the log, queries those of the index.
	looks, queries int
	lag            time.Duration
	down           bool
}

func newWorld(lag time.Duration) *world {
	return &world{timers: map[timers.DueRun]bool{}, woken: map[string]time.Time{}, by: map[string]string{}, held: map[string]bool{}, lag: lag}
}

// add adds a run with a timer.
func (w *world) add(id string, due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timers[timers.DueRun{Run: run(id), DueMs: due.UnixMilli()}] = true
}

func (w *world) Due(_ context.Context, before time.Time, after timers.DueRun, limit int) (out []timers.DueRun, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queries++; w.down {
		return nil, errors.New("down")
	}
	order := func(a, b timers.DueRun) int {
		return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Run.RunID, b.Run.RunID))
	}
	for t := range w.timers {
		woken, is := w.woken[t.Run.RunID]
		listed := !is || time.Since(woken) <= w.lag
		if listed && t.DueMs < before.UnixMilli() && order(t, after) > 0 {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, order)
	return out[:min(limit, len(out))], nil
}

// process is a dispatcher in a world.
type process struct {
	*world
	name string
}

func (p process) Wake(_ context.Context, r subject.Run, _ frame.Head) error {
	p.wake(r)
	return nil
}

func (p process) WakeLost(_ context.Context, r subject.Run, due time.Time) (woken, elsewhere bool, err error) {
	p.mu.Lock()
	p.looks++
	held := p.held[r.RunID]
	p.mu.Unlock()
	switch {
	case !p.timers[timers.DueRun{Run: r, DueMs: due.UnixMilli()}]:
		return false, false, fmt.Errorf("run %s is not due at %s", r.RunID, due)
	case held:
		return false, false, nil
	}
	woken = p.wake(r)
	return woken, !woken, nil
}

func (p process) wake(r subject.Run) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.woken[r.RunID]; is {
		return false
	}
	p.woken[r.RunID], p.by[r.RunID] = time.Now(), p.name
	return true
}

// late requires that all runs were woken, at most so long after their due times.
func (w *world) late(t *testing.T, most time.Duration) {
	t.Helper()
	for timer := range w.timers {
		if w.held[timer.Run.RunID] {
			continue
		}
		at, woken := w.woken[timer.Run.RunID]
		require.True(t, woken, timer.Run.RunID)
		late := at.Sub(time.UnixMilli(timer.DueMs))
		require.GreaterOrEqual(t, late, time.Duration(0))
		require.LessOrEqual(t, late, most, timer.Run.RunID)
	}
}

// A process that starts wakes the runs of one that is gone when they are due.
func TestSweep_TimersOfAProcessThatIsGoneFireOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(20 * time.Millisecond)
		for n := range 200 { // in bursts, and alone for seconds
			w.add(fmt.Sprint(n), time.Now().Add(time.Duration(n*n)*time.Millisecond/2+time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		require.ErrorIs(t, newWatch("d-1", 2*time.Second, w, process{w, "d-1"}).Run(ctx), context.DeadlineExceeded)
		w.late(t, 350*time.Millisecond)
		require.Equal(t, 200, w.looks)
	})
}

// Runs that need no wake stay in the index, before those that were due after them. They hide none.
func TestSweep_RunsThatNeedNoWakeHideNoOthers(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ held, sound int }{{8, 300}, {20, 100}, {1000, 20}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(20 * time.Millisecond)
			for n := range size.held {
				id := fmt.Sprint("held-", n)
				w.held[id] = true
				w.add(id, time.Now().Add(time.Duration(n)*time.Microsecond))
			}
			for n := range size.sound {
				w.add(fmt.Sprint("sound-", n), time.Now().Add(time.Second))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var all sync.WaitGroup
			for _, name := range []string{"d-1", "d-2"} {
				all.Go(func() { _ = newWatch(name, 2*time.Second, w, process{w, name}).Run(ctx) })
			}
			all.Wait()
			w.late(t, 500*time.Millisecond)
		})
	}
}

// Another process wakes no runs whose process is alive, and reads none of their logs.
func TestSweep_LeavesRunsToTheirProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(50 * time.Millisecond)
		owner := newWatch("d-0", 2*time.Second, w, process{w, "d-0"})
		other := newWatch("d-1", 2*time.Second, w, process{w, "d-1"})
		const count = 5000
		for n := range count {
			due := time.Now().Add(time.Duration(n) * 2 * time.Millisecond)
			w.add(fmt.Sprint(n), due)
			owner.Schedule(run(fmt.Sprint(n)), head(1), due)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _ = owner.Run(ctx) })
		wg.Go(func() { _ = other.Run(ctx) })
		wg.Wait()
		w.late(t, 10*time.Millisecond)
		require.Zero(t, w.looks)
		for id, by := range w.by {
			require.Equal(t, "d-0", by, id)
		}
		require.Less(t, w.queries, 12*2*2*10, "two queries in 100 ms, at most, for each process")
	})
}

// Without timers of other processes, a process queries the read model once for each purpose.
func TestSweep_QueriesLittleWhenThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0)
		watch := newWatch("d-0", 2*time.Second, w, process{w, "d-0"})
		for n := range 1500 { // more than a page of its own
			due := time.Now().Add(time.Hour + time.Duration(n)*time.Millisecond)
			w.add(fmt.Sprint(n), due)
			watch.Schedule(run(fmt.Sprint(n)), head(1), due)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 19*time.Second)
		defer cancel()
		require.ErrorIs(t, watch.Run(ctx), context.DeadlineExceeded)
		require.Equal(t, 20, w.queries)
	})
}

// An earlier timer of a run is in the memory of this process, and the run has another one by now,
// of a process that is gone.
func TestSweep_DoesNotRelyOnAnOldTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0)
		watch := newWatch("d-0", 2*time.Second, w, process{w, "d-0"})
		watch.Schedule(run("a"), head(1), time.Now().Add(time.Hour))
		w.add("a", time.Now().Add(5*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		require.ErrorIs(t, watch.Run(ctx), context.DeadlineExceeded)
		w.late(t, 350*time.Millisecond)
	})
}

// The timers of a process that is gone are shared by the others. Few logs are read twice, although
// the read model lists a run for some time after its wake.
func TestSweep_SharesTimersThatBecomeDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dispatchers, count = 4, 2000
		w := newWorld(10 * time.Millisecond)
		for n := range count {
			w.add(fmt.Sprint(n), time.Now().Add(time.Duration(n)*5*time.Millisecond+time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range dispatchers {
			name := fmt.Sprint("d-", i)
			s := newWatch(name, 2*time.Second, w, process{w, name})
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 377 * time.Millisecond) //nolint:forbidigo // the bubble's clock: they start one after the other
				_ = s.Run(ctx)
			})
		}
		wg.Wait()
		w.late(t, 350*time.Millisecond)
		of := map[string]int{}
		for _, by := range w.by {
			of[by]++
		}
		for i := range dispatchers {
			require.Greater(t, of[fmt.Sprint("d-", i)], count/dispatchers/4, of)
		}
		require.Less(t, w.looks, count*3/2)
	})
}

// A read model that was down is queried soon after.
func TestSweep_RecoversSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0)
		w.down = true
		w.add("a", time.Now().Add(2*time.Second))
		time.AfterFunc(time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.down = false
		})
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.ErrorIs(t, newWatch("d-0", 10*time.Second, w, process{w, "d-0"}).Run(ctx), context.DeadlineExceeded)
		w.late(t, 350*time.Millisecond)
		require.Less(t, w.queries, 12)
	})
}
