package engine

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// delivery keeps a delivery while its run is executed. A delivery that was not extended for AckWait may
// have been handed to another dispatcher: it is not ended here any more. Who may execute the run is
// another matter; see frame.Ownership.
type delivery struct {
	message runlog.Delivery
	// process is the id under which the run may be executed; empty: that of the moment.
	process string
	ackWait time.Duration
	clock   func() time.Time
	log     *slog.Logger

	mu       sync.Mutex // guards extended
	extended time.Time  // when the delivery was last known to be held
}

// errLapsed says that the delivery may have been handed to another dispatcher.
var errLapsed = errors.New("delivery has lapsed")

func newDelivery(x *Executor, d runlog.Delivery) *delivery {
	return &delivery{message: d, ackWait: x.cfg.AckWait, clock: x.deps.Clock, log: x.deps.Logger, extended: x.deps.Clock()}
}

// extendInterval is how often a delivery is extended. One lost extension lets it lapse, which costs another
// dispatcher a look at the log and nothing else.
func (d *delivery) extendInterval() time.Duration { return d.ackWait * 3 / 4 }

// endWith ends the delivery unless it has lapsed. Errors: errLapsed and those of as.
func (d *delivery) endWith(as func() error) error {
	d.mu.Lock()
	lapsed := d.hasLapsed(d.clock())
	d.mu.Unlock()
	if lapsed {
		return errLapsed
	}
	return as()
}

// hasLapsed reports that the delivery was not extended in time. Call it with the lock.
func (d *delivery) hasLapsed(now time.Time) bool { return now.Sub(d.extended) >= d.ackWait }

// extend keeps the delivery for another AckWait. One that comes too late may still keep a delivery
// that has not been handed out again.
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

// nextExtension is when the delivery must be extended next, from now.
func (d *delivery) nextExtension() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.extendInterval()-d.clock().Sub(d.extended), 0)
}

// extendIfDue extends the delivery unless it was extended a moment ago, before a regular beat begins.
func (d *delivery) extendIfDue() {
	if d.nextExtension() < d.extendInterval()*3/4 {
		d.extend()
	}
}

// keepExtended extends the delivery until release is called.
func (d *delivery) keepExtended() (release func()) {
	var (
		over atomic.Bool
		beat *time.Timer
		set  = make(chan struct{}) // closed once beat is set
	)
	beat = time.AfterFunc(d.nextExtension(), func() {
		<-set
		if over.Load() {
			return
		}
		d.extend()
		if !over.Load() {
			beat.Reset(d.extendInterval())
		}
	})
	close(set)
	return func() {
		over.Store(true)
		beat.Stop()
	}
}
