// Package timers wakes runs that wait for an instant. The process that suspended a run wakes it. Runs
// whose process is gone, and timers that no process has in memory, are found in the read model's index
// of due timers. The instant itself is in the run's log.
package timers

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Config configures the search for overdue runs of other processes.
type Config struct {
	// SweepEvery is how often the read model is queried for all overdue timers, and for the next
	// ones.
	SweepEvery time.Duration
	// Grace is how far overdue a timer must be before another process wakes its run, at least. A
	// process that only is slow, or a read model that lags, costs a needless look at the log.
	Grace time.Duration
	// Process returns the id of this process.
	Process func() string
}

const (
	// maxWakes limits the concurrent wakes of a process, separately for its own runs and for
	// overdue ones. The log commits appends that arrive together in one sync.
	maxWakes = 128
	// maxDue limits the due runs of one batch.
	maxDue = 8 * maxWakes
	// horizon and maxTimers limit the timers in memory. A later or further timer is left to the sweep,
	// which fires it at most half a second late. A timer takes about 500 bytes.
	horizon   = time.Hour
	maxTimers = 50_000
	// maxWait limits a wait, which the monotonic clock measures. So a timer fires soon after the wall
	// clock was set forward, or after the machine was suspended.
	maxWait = 2 * time.Second
)

// Waker enqueues runs again. It is safe for concurrent use.
type Waker interface {
	// Wake wakes a run whose log still ends at head.
	Wake(ctx context.Context, r subject.Run, head frame.Head) error
	// WakeLost wakes a run that no process watches and whose timer was due. woken is false if the
	// run needs no wake. elsewhere reports that it was woken a moment ago.
	WakeLost(ctx context.Context, r subject.Run, due time.Time) (woken, elsewhere bool, err error)
}

// Watch has the waiting runs of this process. It is safe for concurrent use.
type Watch struct {
	cfg   Config
	waker Waker
	clock func() time.Time
	log   *slog.Logger
	sweeper

	mu      sync.Mutex // guards what follows
	timers  timerHeap
	byRun   map[key]*waitingRun
	changed chan struct{} // capacity 1: an earlier timer was added
}

// key identifies a run; a run has one timer.
type key struct{ tenant, runID string }

type waitingRun struct {
	run   subject.Run
	head  frame.Head
	due   time.Time
	index int // in the heap
}

func (s *waitingRun) key() key { return key{s.run.Tenant, s.run.RunID} }

// New returns a watch; Bind sets the waker before Run.
func New(cfg Config, index Index, clock func() time.Time, log *slog.Logger) *Watch {
	return &Watch{
		cfg: cfg, clock: clock, log: log, sweeper: sweeper{index: index, skipUntil: map[DueRun]time.Time{}},
		byRun: map[key]*waitingRun{}, changed: make(chan struct{}, 1),
	}
}

// Bind sets the waker. The executor and the watch depend on each other.
func (w *Watch) Bind(waker Waker) { w.waker = waker }

// Schedule sets the timer of a run, and replaces an earlier one. A timer that is due later than
// horizon, or for which there is no room, is left to the sweep.
func (w *Watch) Schedule(r subject.Run, head frame.Head, due time.Time) {
	w.mu.Lock()
	s := &waitingRun{run: r, head: head, due: due}
	w.removeRun(s.key())
	if due.Sub(w.clock()) > horizon || len(w.timers) >= maxTimers {
		w.mu.Unlock()
		return
	}
	heap.Push(&w.timers, s)
	w.byRun[s.key()] = s
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Cancel removes the timer of a run, if there is one.
func (w *Watch) Cancel(tenant, runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeRun(key{tenant, runID})
}

func (w *Watch) removeRun(k key) {
	if s, ok := w.byRun[k]; ok {
		heap.Remove(&w.timers, s.index)
		delete(w.byRun, k)
	}
}

// Count is the number of waiting runs of this process.
func (w *Watch) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.timers)
}

// Run wakes due runs, of this process and overdue ones of others, until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.wakeOwn(ctx) })
	g.Go(func() error { return w.wakeLost(ctx) })
	return g.Wait()
}

func (w *Watch) wakeOwn(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		w.drainChanged()
		next := w.untilNext()
		if next == 0 {
			w.wakeDue(ctx)
			continue
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
		case <-w.changed:
		case <-timer.C:
		}
	}
	return ctx.Err()
}

// drainChanged clears the signal: the timers are read next.
func (w *Watch) drainChanged() {
	select {
	case <-w.changed:
	default:
	}
}

func (w *Watch) untilNext() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.timers) == 0 {
		return time.Hour
	}
	return min(max(w.timers[0].due.Sub(w.clock()), 0), maxWait)
}

// retryWake is the pause before a failed wake is retried.
const retryWake = time.Second

func (w *Watch) wakeDue(ctx context.Context) {
	inParallel(w.takeDue(), maxWakes, func(s *waitingRun) {
		err := w.contain(s.run, func() error { return w.waker.Wake(ctx, s.run, s.head) })
		if err == nil || ctx.Err() != nil {
			return
		}
		w.log.Warn("run not woken in time; trying again", "run_id", s.run.RunID, "error", err)
		w.Schedule(s.run, s.head, w.clock().Add(retryWake))
	})
}

// contain recovers a panic about one run, so that others are still woken.
func (w *Watch) contain(r subject.Run, f func() error) error {
	return lifecycle.Contain(w.log, "timers", f, "run_id", r.RunID)
}

// takeDue removes the due timers, up to maxDue.
func (w *Watch) takeDue() []*waitingRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []*waitingRun
	for now := w.clock(); len(w.timers) > 0 && len(due) < maxDue && !w.timers[0].due.After(now); {
		due = append(due, w.timers[0])
		w.removeRun(w.timers[0].key())
	}
	return due
}

// inParallel calls do for each item, up to most at a time, and waits for all calls. A single item
// needs no goroutine.
func inParallel[T any](items []T, most int, do func(T)) {
	if len(items) == 1 {
		do(items[0])
		return
	}
	var g errgroup.Group
	g.SetLimit(most)
	for _, item := range items {
		g.Go(func() error {
			do(item)
			return nil
		})
	}
	_ = g.Wait() // do returns no error
}

// timerHeap is a heap by due time.
type timerHeap []*waitingRun

func (s timerHeap) Len() int           { return len(s) }
func (s timerHeap) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s timerHeap) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push adds a timer; for container/heap.
func (s *timerHeap) Push(x any) {
	added := x.(*waitingRun) //nolint:forcetypeassert // only Schedule pushes
	added.index = len(*s)
	*s = append(*s, added)
}

// Pop removes the last timer; for container/heap.
func (s *timerHeap) Pop() any {
	old := *s
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return last
}
