package execute

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// lease is the hold on a delivery of whoever carries its run out. Once it has passed, the run may be with
// somebody else, whose delivery it is now: it is not ended here any more, also if signs of life are heard
// again. The queue hands it out once nobody gives any.
type lease struct {
	delivery runlog.Delivery
	every    time.Duration
	clock    func() time.Time
	log      *slog.Logger

	mu     sync.Mutex // guards what follows
	signed time.Time  // when the last sign of life was given before the lease had passed
}

// errLapsed says that the delivery may be somebody else's by now.
var errLapsed = errors.New("lease has passed")

// newLease counts from now: how long the delivery has waited here before, nobody knows.
func newLease(x *Executor, d runlog.Delivery) *lease {
	return &lease{delivery: d, every: x.cfg.Heartbeat, clock: x.deps.Clock, log: x.deps.Logger, signed: x.deps.Clock()}
}

// ack says that the run needs nobody. Errors: errLapsed.
func (l *lease) ack() error { return l.end(l.delivery.Ack) }

// retry hands the run back. Errors: errLapsed.
func (l *lease) retry() error { return l.end(l.delivery.Retry) }

func (l *lease) end(as func() error) error {
	l.mu.Lock()
	passed := l.lapsed(l.clock())
	l.mu.Unlock()
	if passed {
		return errLapsed
	}
	return as()
}

// lapsed reports that the lease has passed. Call it with the lock.
func (l *lease) lapsed(now time.Time) bool { return now.Sub(l.signed) >= Heartbeats*l.every }

// extend is a sign of life to the queue. One that comes too late still keeps a run that nobody else was
// handed meanwhile.
func (l *lease) extend() {
	now := l.clock()
	if err := l.delivery.Extend(); err != nil {
		l.log.Debug("heartbeat failed", "run_id", l.delivery.Frame().Run.RunID, "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lapsed(now) {
		l.signed = now
	}
}

// keep extends the lease until release is called, or a little longer, for what takes longer than a heartbeat, and whose every
// step has an end: to read a long log, first of all.
func (l *lease) keep() (release func()) {
	var (
		over atomic.Bool
		beat *time.Timer
		set  = make(chan struct{}) // beat is
	)
	beat = time.AfterFunc(l.every, func() {
		<-set
		if over.Load() {
			return
		}
		l.extend()
		if !over.Load() {
			beat.Reset(l.every)
		}
	})
	close(set)
	return func() {
		over.Store(true)
		beat.Stop()
	}
}
