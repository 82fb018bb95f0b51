package engine

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// hold keeps a delivery while its run is executed. A delivery that was not extended for AckWait may
// have been handed to another dispatcher: it is not ended here any more. Who may execute the run is
// another matter; see frame.Ownership.
type hold struct {
	delivery runlog.Delivery
	// process is the id under which the run may be executed; empty: that of the moment.
	process string
	wait    time.Duration
	clock   func() time.Time
	log     *slog.Logger

	mu       sync.Mutex // guards extended
	extended time.Time  // when the delivery was last known to be held
}

// errLapsed says that the delivery may have been handed to another dispatcher.
var errLapsed = errors.New("delivery has lapsed")

func newHold(x *Executor, d runlog.Delivery) *hold {
	return &hold{delivery: d, wait: x.cfg.AckWait, clock: x.deps.Clock, log: x.deps.Logger, extended: x.deps.Clock()}
}

// every is how often a delivery is extended. One lost extension lets it lapse, which costs another
// dispatcher a look at the log and nothing else.
func (h *hold) every() time.Duration { return h.wait * 3 / 4 }

// end ends the delivery unless it has lapsed. Errors: errLapsed and those of as.
func (h *hold) end(as func() error) error {
	h.mu.Lock()
	lapsed := h.lapsed(h.clock())
	h.mu.Unlock()
	if lapsed {
		return errLapsed
	}
	return as()
}

// lapsed reports that the delivery was not extended in time. Call it with the lock.
func (h *hold) lapsed(now time.Time) bool { return now.Sub(h.extended) >= h.wait }

// extend keeps the delivery for another AckWait. One that comes too late may still keep a delivery
// that has not been handed out again.
func (h *hold) extend() {
	now := h.clock()
	if err := h.delivery.Extend(); err != nil {
		h.log.Debug("delivery not extended", "run_id", h.delivery.Frame().Run.RunID, "error", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lapsed(now) {
		h.extended = now
	}
}

// due is when the delivery must be extended next, from now.
func (h *hold) due() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.every()-h.clock().Sub(h.extended), 0)
}

// refresh extends the delivery unless it was extended a moment ago, before a regular beat begins.
func (h *hold) refresh() {
	if h.due() < h.every()*3/4 {
		h.extend()
	}
}

// keep extends the delivery until release is called.
func (h *hold) keep() (release func()) {
	var (
		over atomic.Bool
		beat *time.Timer
		set  = make(chan struct{}) // closed once beat is set
	)
	beat = time.AfterFunc(h.due(), func() {
		<-set
		if over.Load() {
			return
		}
		h.extend()
		if !over.Load() {
			beat.Reset(h.every())
		}
	})
	close(set)
	return func() {
		over.Store(true)
		beat.Stop()
	}
}
