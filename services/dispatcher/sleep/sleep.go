// Package sleep watches over runs that wait for an instant. Whoever put a run to
// sleep wakes it; runs whose watcher is gone are found in the read model's
// index of due timers. The instant itself is in the run's log.
package sleep

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Config says how lost sleepers are looked for.
type Config struct {
	// SweepEvery is how often the read model is asked for overdue timers.
	SweepEvery time.Duration
	// Grace is how far overdue a timer must be before its watcher counts as gone.
	Grace time.Duration
}

const (
	// sweepLimit is how many overdue timers are read at a time.
	sweepLimit = 256
	// lookAgain is how long an overdue run is left alone that was looked at: who was woken needs
	// some time to move on, and who was not, as one whose log is damaged, stays overdue for long.
	lookAgain = 30 * time.Second
)

// Waker puts runs into the queue again.
type Waker interface {
	// Wake wakes a run whose log still ends at head.
	Wake(ctx context.Context, r subject.Run, head frame.Head) error
	// WakeLost wakes a run whose watcher is gone.
	WakeLost(ctx context.Context, r subject.Run) error
}

// Timer is what a run waits for.
type Timer struct {
	Run   subject.Run
	DueMs int64
}

// Index finds timers that are overdue, in a fixed order from behind one on; the zero Timer is
// before all.
type Index interface {
	Due(ctx context.Context, before time.Time, after Timer, limit int) ([]Timer, error)
}

// Watch holds the sleepers of this process. It is safe for concurrent use.
type Watch struct {
	cfg   Config
	waker Waker
	index Index
	clock func() time.Time
	log   *slog.Logger

	mu       sync.Mutex // guards what follows
	sleepers sleepers
	byRun    map[key]*sleeper
	changed  chan struct{} // capacity 1: an earlier sleeper came

	// Only Run uses what follows: the last timer that was read, and those looked at of late.
	last   Timer
	looked map[Timer]time.Time
}

// key names a run; a run sleeps once.
type key struct{ tenant, runID string }

type sleeper struct {
	run   subject.Run
	head  frame.Head
	due   time.Time
	index int // in the heap
}

func (s *sleeper) key() key { return key{s.run.Tenant, s.run.RunID} }

// New makes a watch; the waker is set by Bind before Run.
func New(cfg Config, index Index, clock func() time.Time, log *slog.Logger) *Watch {
	return &Watch{cfg: cfg, index: index, clock: clock, log: log, byRun: map[key]*sleeper{}, looked: map[Timer]time.Time{}, changed: make(chan struct{}, 1)}
}

// Bind says who wakes runs; the executor and the watch know each other.
func (w *Watch) Bind(waker Waker) { w.waker = waker }

// Until watches over a run until an instant, and no longer until another one it
// was given before.
func (w *Watch) Until(r subject.Run, head frame.Head, due time.Time) {
	w.mu.Lock()
	s := &sleeper{run: r, head: head, due: due}
	w.drop(s.key())
	heap.Push(&w.sleepers, s)
	w.byRun[s.key()] = s
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Forget ends the watch over a run; nothing happens if there is none.
func (w *Watch) Forget(tenant, runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(key{tenant, runID})
}

func (w *Watch) drop(k key) {
	if s, ok := w.byRun[k]; ok {
		heap.Remove(&w.sleepers, s.index)
		delete(w.byRun, k)
	}
}

// Sleeping counts the runs that are watched over.
func (w *Watch) Sleeping() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sleepers)
}

// Run wakes sleepers until ctx ends. Those that are due come first, whatever else is
// ready at the same time.
func (w *Watch) Run(ctx context.Context) error {
	sweep := time.NewTicker(w.cfg.SweepEvery)
	defer sweep.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		w.seen()
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
		case <-sweep.C:
			w.sweep(ctx)
		}
	}
	return ctx.Err()
}

// seen takes the news of sleepers that are looked at next.
func (w *Watch) seen() {
	select {
	case <-w.changed:
	default:
	}
}

func (w *Watch) untilNext() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sleepers) == 0 {
		return time.Hour
	}
	return max(w.sleepers[0].due.Sub(w.clock()), 0)
}

// retryWake is the pause before a run is woken again that could not be.
const retryWake = time.Second

func (w *Watch) wakeDue(ctx context.Context) {
	for _, s := range w.takeDue() {
		err := w.contain(s.run, func() error { return w.waker.Wake(ctx, s.run, s.head) })
		if err == nil || ctx.Err() != nil {
			continue
		}
		w.log.Warn("run not woken in time; trying again", "run_id", s.run.RunID, "error", err)
		w.Until(s.run, s.head, w.clock().Add(retryWake))
	}
}

// contain keeps a panic about one run from the others.
func (w *Watch) contain(r subject.Run, f func() error) error {
	return lifecycle.Contain(w.log, "timers", f, "run_id", r.RunID)
}

func (w *Watch) takeDue() []*sleeper {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []*sleeper
	for now := w.clock(); len(w.sleepers) > 0 && !w.sleepers[0].due.After(now); {
		due = append(due, w.sleepers[0])
		w.drop(w.sleepers[0].key())
	}
	return due
}

// sweep wakes runs that should have been woken by somebody and were not. Each goes on where the
// one before ended: those that cannot be woken do not keep the others away.
func (w *Watch) sweep(ctx context.Context) {
	now := w.clock()
	maps.DeleteFunc(w.looked, func(_ Timer, at time.Time) bool { return now.Sub(at) >= lookAgain })
	timers, err := w.index.Due(ctx, now.Add(-w.cfg.Grace), w.last, sweepLimit)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Debug("overdue timers not read", "error", err)
		}
		return
	}
	for _, t := range timers {
		if _, ok := w.looked[t]; ok {
			continue
		}
		err := w.contain(t.Run, func() error { return w.waker.WakeLost(ctx, t.Run) })
		if err == nil {
			w.looked[t] = now
		} else if !errors.Is(err, runlog.ErrNotFound) && ctx.Err() == nil {
			w.log.Warn("overdue run not woken", "run_id", t.Run.RunID, "error", err)
		}
	}
	if len(timers) == sweepLimit {
		w.last = timers[len(timers)-1]
		return
	}
	w.last = Timer{}
}

// sleepers is a heap by due time.
type sleepers []*sleeper

func (s sleepers) Len() int           { return len(s) }
func (s sleepers) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s sleepers) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push adds a sleeper; for container/heap.
func (s *sleepers) Push(x any) {
	added := x.(*sleeper) //nolint:forcetypeassert // only Until pushes
	added.index = len(*s)
	*s = append(*s, added)
}

// Pop removes the last sleeper; for container/heap.
func (s *sleepers) Pop() any {
	old := *s
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return last
}
