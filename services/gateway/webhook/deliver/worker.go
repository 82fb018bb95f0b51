package deliver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Deps are the collaborators.
type Deps struct {
	Log     runlog.Pager
	Records *outbox.Records
	View    *subscription.View
	Store   *subscription.Store
	Secrets *subscription.Secrets
	Lanes   *outbox.Lanes
	Dead    *outbox.Dead
	Poster  Poster
	// Questions renders those of runs that name a callbackUrl.
	Questions Questions
	// Fed is up to where the log will not be offered again.
	Fed func(context.Context) (uint64, error)
	// Owner names this process.
	Owner  string
	Clock  func() time.Time
	Logger *slog.Logger
	Counts *Counts
}

// Worker works on the lanes of the outbox; the workers of all replicas share them.
type Worker struct {
	policy Policy
	deps   Deps

	mu     sync.Mutex // guards agenda
	agenda *agenda
	wake   chan struct{} // holds one token when the agenda has changed
}

// NewWorker makes a worker.
func NewWorker(p Policy, d Deps) *Worker {
	return &Worker{policy: p, deps: d, agenda: newAgenda(p.Limits, d.View.Lookup), wake: make(chan struct{}, 1)}
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { w.watch(ctx) })
	for {
		changed := w.deps.View.Changed()
		next := w.startAll(ctx, &wg)
		if !w.sleep(ctx, next, changed) {
			return
		}
	}
}

// sleep waits until there may be something to do; false: ctx has ended.
func (w *Worker) sleep(ctx context.Context, next time.Time, changed <-chan struct{}) bool {
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

// startAll begins every lane whose time has come, and gives the time of the next.
func (w *Worker) startAll(ctx context.Context, wg *sync.WaitGroup) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.deps.Clock()
	for ctx.Err() == nil {
		id, ok := w.agenda.take(now)
		if !ok {
			break
		}
		wg.Go(func() {
			due, there := w.drive(ctx, id)
			w.finished(id, due, there)
		})
	}
	return w.agenda.next(now)
}

// finished puts a lane back with what is known of it.
func (w *Worker) finished(id outbox.ID, due time.Time, there bool) {
	w.change(func(a *agenda) {
		if there {
			a.wait(id, due)
		} else {
			a.end(id)
		}
		a.done(id)
	})
}

func (w *Worker) change(f func(*agenda)) {
	w.mu.Lock()
	f(w.agenda)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// rewatch is the wait before a watch that broke is begun again.
const rewatch = time.Second

// watch keeps the agenda up with the outbox.
func (w *Worker) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.deps.Lanes.Watch(ctx, nil, func(id outbox.ID, l *outbox.Lane) {
			w.change(func(a *agenda) {
				if l == nil {
					a.remove(id)
					return
				}
				a.set(id, l.Due())
			})
		})
		if ctx.Err() != nil {
			return
		}
		w.deps.Logger.Warn("webhooks: the outbox is not seen, will try again", "error", err)
		lifecycle.Wait(ctx, rewatch)
	}
}

// Pending is how many lanes there are.
func (w *Worker) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.agenda.due)
}
