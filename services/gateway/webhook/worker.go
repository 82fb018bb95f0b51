package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// workerDeps are the worker's collaborators.
type workerDeps struct {
	Log runlog.Pager
	webhooks
	outbox
	Poster Poster
	// Questions renders the questions of runs that have a callbackUrl.
	Questions QuestionRenderer
	// Owner names this process.
	Owner  string
	Clock  func() time.Time
	Logger *slog.Logger
	Counts *counts
}

// webhooks are the registered webhooks, their state and their secrets.
type webhooks struct {
	View    *subscription.View
	Store   *subscription.Store
	Secrets *subscription.Secrets
}

// outbox has the deliveries that are due, and those that were given up.
type outbox struct {
	Records *runRecords
	Lanes   *laneStore
	Limit   *laneLimit
	Dead    *deadLetters
	// Fed returns the log position up to which frames of a tenant will not be offered again.
	Fed func(ctx context.Context, tenant string) (uint64, error)
}

// worker delivers lanes. The workers of all replicas share the lanes.
type worker struct {
	policy Policy
	deps   workerDeps

	mu        sync.Mutex // guards scheduler
	scheduler *scheduler
	wake      chan struct{} // holds one token after a change of the scheduler
}

// newWorker makes a worker; it starts nothing.
func newWorker(p Policy, d workerDeps) *worker {
	return &worker{policy: p, deps: d, scheduler: newScheduler(p.Limits, d.View.Lookup), wake: make(chan struct{}, 1)}
}

// Run delivers until ctx ends.
func (w *worker) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { w.watch(ctx) })
	for {
		changed := w.deps.View.Changed()
		next := w.startDue(ctx, &wg)
		if !w.wait(ctx, next, changed) {
			return
		}
	}
}

// wait blocks until there may be work. It returns false when ctx has ended.
func (w *worker) wait(ctx context.Context, next time.Time, changed <-chan struct{}) bool {
	var timer <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(max(next.Sub(w.deps.Clock()), 0))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.wake:
	case <-changed:
	case <-timer:
	}
	return true
}

// startDue starts every lane that is due and returns when the next one is.
func (w *worker) startDue(ctx context.Context, wg *sync.WaitGroup) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.deps.Clock()
	for ctx.Err() == nil {
		id, ok := w.scheduler.claimNext(now)
		if !ok {
			break
		}
		wg.Go(func() {
			due, exists := w.deliverLane(ctx, id)
			w.reschedule(id, due, exists)
		})
	}
	return w.scheduler.nextWake(now)
}

// reschedule returns a lane to the scheduler.
func (w *worker) reschedule(id laneID, due time.Time, exists bool) {
	w.update(func(s *scheduler) {
		if exists {
			s.reschedule(id, due)
		} else {
			s.forgetUnlessChanged(id)
			if _, still := s.due[id]; !still {
				w.deps.Limit.deleted(id)
			}
		}
		s.release(id)
	})
}

func (w *worker) update(f func(*scheduler)) {
	w.mu.Lock()
	f(w.scheduler)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// rewatch is the wait before a broken watch is restarted.
const rewatch = time.Second

// watch applies changes of the lanes to the scheduler.
func (w *worker) watch(ctx context.Context) {
	ready := w.deps.Limit.ready
	for range retry.Every(rewatch).Tries(ctx) {
		err := w.deps.Lanes.Watch(ctx, ready, func(id laneID, l *lane) {
			if l == nil {
				w.forget(id)
				return
			}
			w.deps.Limit.created(id)
			w.update(func(s *scheduler) { s.schedule(id, l.Due()) })
		})
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ready: // the store has closed it
			ready = nil
		default:
		}
		w.deps.Logger.Warn("webhooks: cannot watch the outbox, will retry", "error", err)
	}
}

// forget removes a lane that the store has no longer.
func (w *worker) forget(id laneID) {
	w.deps.Limit.deleted(id)
	w.update(func(s *scheduler) { s.forget(id) })
}

// Pending returns the number of lanes.
func (w *worker) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.scheduler.due)
}
