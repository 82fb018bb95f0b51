package engine

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// delivery extends a message of the queue while its run is executed. A message without an extension
// for AckWait may have been delivered to another dispatcher, so this process does not end it any
// more. frame.Ownership decides who may execute the run.
type delivery struct {
	message runlog.Delivery
	// process is the id under which the run may be executed; empty means the current id.
	process string
	ackWait time.Duration
	clock   func() time.Time
	log     *slog.Logger
	// recorded is the id of this process in the run's quarantine record; empty without a record.
	recorded string

	// heartbeat fires when a session must extend the message; see startHeartbeat.
	heartbeat <-chan time.Time

	mu       sync.Mutex // guards extended
	extended time.Time  // the last successful extension
}

// errLapsed: the message may have been delivered to another dispatcher.
var errLapsed = errors.New("delivery has lapsed")

func newDelivery(e *Executor, message runlog.Delivery) *delivery {
	return &delivery{
		message: message, ackWait: e.cfg.AckWait,
		clock: e.deps.Clock, log: e.deps.Logger, extended: e.deps.Clock(),
	}
}

// extendInterval is the time between extensions. After one lost extension the message lapses, and
// another dispatcher reads the log needlessly.
func (d *delivery) extendInterval() time.Duration { return d.ackWait * 3 / 4 }

// startHeartbeat makes heartbeat fire regularly until stop is called.
func (d *delivery) startHeartbeat() (stop func()) {
	t := time.NewTicker(d.extendInterval())
	d.heartbeat = t.C
	return t.Stop
}

// endWith ends the message unless it has lapsed. Errors: errLapsed and those of as.
func (d *delivery) endWith(as func() error) error {
	d.mu.Lock()
	lapsed := d.hasLapsed(d.clock())
	d.mu.Unlock()
	if lapsed {
		return errLapsed
	}
	return as()
}

// hasLapsed reports that the message was not extended in time. Call it with the lock.
func (d *delivery) hasLapsed(now time.Time) bool { return now.Sub(d.extended) >= d.ackWait }

// extend keeps the message for another AckWait. A late extension may still succeed if the message
// was not delivered again.
func (d *delivery) extend() {
	now := d.clock()
	if err := d.message.Extend(); err != nil {
		d.log.Debug("delivery not extended", "run_id", d.message.Frame().Run.RunID, "error", err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hasLapsed(now) {
		d.extended = now
	}
}

// nextExtension is the time until the next extension.
func (d *delivery) nextExtension() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.extendInterval()-d.clock().Sub(d.extended), 0)
}

// extendIfDue extends the message unless it was extended recently, before regular extensions begin.
func (d *delivery) extendIfDue() {
	if d.nextExtension() < d.extendInterval()*3/4 {
		d.extend()
	}
}

// keepExtended extends the message regularly until release is called.
func (d *delivery) keepExtended() (release func()) {
	var (
		released atomic.Bool
		timer    *time.Timer
		set      = make(chan struct{}) // closed once timer is set
	)
	timer = time.AfterFunc(d.nextExtension(), func() {
		<-set
		if released.Load() {
			return
		}
		d.extend()
		if !released.Load() {
			timer.Reset(d.extendInterval())
		}
	})
	close(set)
	return func() {
		released.Store(true)
		timer.Stop()
	}
}
