package queue

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// queueRetry is the pause after a failed read of the queue.
const queueRetry = 200 * time.Millisecond

// fetch reads runs from the queue until ctx ends. They are executed while slots are free, and
// become tickets otherwise.
func (s *Scheduler) fetch(ctx context.Context) {
	for ctx.Err() == nil {
		if free := s.freeSlots(); free > 0 {
			s.deps.Queue.Want(free)
			s.fetchOne(ctx)
			continue
		}
		for n := s.countUnserved(ctx); n > 0 && ctx.Err() == nil; n-- {
			s.deps.Queue.Want(min(n, maxAhead))
			s.fetchOne(ctx)
		}
	}
}

// maxAhead limits the runs fetched ahead while the queue is emptied into tickets. They count as
// handed out until their tickets exist.
const maxAhead = 16

// freeSlots is the number of slots for runs from the queue; 0 while the queue lags.
func (s *Scheduler) freeSlots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lagging {
		return 0
	}
	return s.slots.Free()
}

// fetchOne reads the next run from the queue.
func (s *Scheduler) fetchOne(ctx context.Context) {
	d, err := s.deps.Queue.Next(ctx)
	switch {
	case err == nil:
		s.admit(d)
	case ctx.Err() == nil:
		if !errors.Is(err, context.Canceled) { // the queue is closed: the process stops
			s.deps.Logger.Warn("dispatch queue not readable; trying again", "error", err)
		}
		lifecycle.Wait(ctx, queueRetry)
	}
}

// countUnserved waits for a slot, and then returns the number of queued runs without one, which
// become tickets. While another dispatcher has free slots the queue is empty, and runs are left to
// it.
func (s *Scheduler) countUnserved(ctx context.Context) int {
	s.mu.Lock()
	lagging := s.lagging
	s.mu.Unlock()
	if !lagging && !s.waitForSlot(ctx) {
		return 0
	}
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	d, err := s.deps.Queue.Depth(bounded)
	if err != nil || d.Waiting+d.Fetched == 0 {
		s.mu.Lock()
		s.lagging = false
		s.mu.Unlock()
		return 0
	}
	return d.Waiting + d.Fetched
}

// waitForSlot reports that no slot became free for ParkAfter.
func (s *Scheduler) waitForSlot(ctx context.Context) bool {
	t := time.NewTimer(s.cfg.ParkAfter)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.freed:
		return false
	case <-t.C:
		return true
	}
}

// admit hands a run to the executor, or stores a ticket for it. A schedule that must be read from the
// log is read in the background: the next run, of another tenant maybe, does not wait for that.
func (s *Scheduler) admit(d runlog.Delivery) {
	if sched, known := s.knownSchedule(d.Frame()); known {
		s.admitScheduled(d, sched)
		return
	}
	s.runIn(s.reads, func(ctx context.Context) {
		sched, err := s.readSchedule(ctx, d.Frame().Run)
		if err != nil {
			s.retryDelivery(d, err)
			return
		}
		s.admitScheduled(d, sched)
	})
}

// admitScheduled is admit once the schedule is known.
func (s *Scheduler) admitScheduled(d runlog.Delivery, sched *wire.Schedule) {
	f := d.Frame()
	now := s.deps.Clock()
	l := limitsOf(f.Run, f.Kind, false, sched, s.deps.Tenant(f.Run.Tenant))
	s.mu.Lock()
	if !d.Redelivered() && !f.Stored.IsZero() {
		s.lagging = now.Sub(f.Stored) > s.cfg.MaxLag
	}
	lined := !l.isEmpty() && (s.book.HasWaiting(f.Run.Tenant, l.lane()) || s.isLimitUsedUp(l))
	fits := !lined && s.slots.Fits(f.Run.Tenant) && !s.book.Ready(f.Run.Tenant, now)
	if fits {
		s.slots.Acquire(f.Run.Tenant)
	}
	s.mu.Unlock()
	out := &delivery{scheduler: s, inner: d, frame: f, schedule: sched}
	switch {
	case lined:
		s.runWrite(func(ctx context.Context) { s.park(ctx, d, reasonOf(l), sched) })
	case !fits:
		s.runWrite(func(ctx context.Context) { s.park(ctx, d, Capacity, sched) })
	case l.isEmpty():
		s.ready <- out
	default:
		s.runWrite(func(ctx context.Context) { s.admitLimited(ctx, out, l, sched) })
	}
}

// admitLimited hands out a run that has a slot, if its limits allow it. If that fails, or panics,
// the slot is free again.
func (s *Scheduler) admitLimited(ctx context.Context, d *delivery, l limits, sched *wire.Schedule) {
	handedOut := false
	defer func() {
		if !handedOut {
			d.returnPermits(ctx)
			s.freeSlot(d.frame.Run.Tenant)
		}
	}()
	d.process = s.deps.Leases.Process()
	why, _, err := s.acquireLimits(ctx, d, l)
	switch {
	case err != nil:
		s.retryDelivery(d.inner, err)
	case why != "":
		s.park(ctx, d.inner, why, sched)
	default:
		handedOut = true
		s.ready <- d
	}
}

// isLimitUsedUp reports whether a concurrency limit is used up, as far as this process knows.
func (s *Scheduler) isLimitUsedUp(l limits) bool {
	return slices.ContainsFunc(l.permits, s.permits.isUsedUp)
}

// limitPause is how long a lane is blocked after its concurrency limit is used up, unless a permit
// becomes free.
const limitPause = 3 * time.Second

// reasonOf is the reason of a run that waits behind others of its lane.
func reasonOf(l limits) Reason {
	if len(l.permits) > 0 {
		return Concurrency
	}
	return Rate
}

// acquireLimits acquires the permits of a run and counts its start. why is set if a limit is used
// up, and wait is the time to block the lane; the caller then returns the permits that d has. A run
// that one rate refuses counts for no other rate.
func (s *Scheduler) acquireLimits(ctx context.Context, d *delivery, l limits) (why Reason, wait time.Duration, err error) {
	if s.isLimitUsedUp(l) {
		return Concurrency, limitPause, nil
	}
	for _, p := range l.permits {
		got, err := s.permits.acquire(ctx, p, d.frame.Run.RunID, d.process)
		if errors.Is(err, errLimited) {
			return Concurrency, limitPause, nil
		}
		if err != nil {
			return "", 0, err
		}
		d.permits = append(d.permits, got)
	}
	// The tenant's rate comes last: other workflows have it, too, and a charge that is taken back may
	// have made their runs wait.
	for i, r := range slices.Backward(l.rates) {
		if wait, err := chargeRate(ctx, s.deps.Rates, r, d.frame.Run.RunID, s.deps.Clock); err != nil || wait > 0 {
			for _, charged := range l.rates[i+1:] {
				s.refund(ctx, charged, d.frame.Run.RunID)
			}
			return Rate, wait, err
		}
	}
	return "", 0, nil
}

// park stores a ticket for a delivery, and then acknowledges the delivery.
func (s *Scheduler) park(ctx context.Context, d runlog.Delivery, why Reason, sched *wire.Schedule) {
	t := newTicket(d.Frame(), why, sched, s.deps.Clock())
	value, err := t.value()
	if err == nil {
		_, err = s.deps.Tickets.Update(ctx, t.initialKey(), value, 0)
	}
	if err != nil && !errors.Is(err, kv.ErrConflict) { // a conflict: the ticket exists
		s.retryDelivery(d, err)
		return
	}
	if err == nil {
		s.metrics.parked.WithLabelValues(string(why)).Inc()
		s.deps.Logger.Debug("run waits", "run_id", t.RunID, "reason", why)
	}
	if err := d.Ack(); err != nil { // it is delivered again
		s.deps.Logger.Debug("delivery of a waiting run not ended", "run_id", t.RunID, "error", err)
	}
}

func (s *Scheduler) retryDelivery(d runlog.Delivery, why error) {
	s.deps.Logger.Warn("run handed back: neither executed nor parked", "run_id", d.Frame().Run.RunID, "error", why)
	if err := d.Retry(); err != nil {
		s.deps.Logger.Debug("delivery not ended", "run_id", d.Frame().Run.RunID, "error", err)
	}
}

// scheduleMember occurs in every record with a schedule; other records are not parsed.
var scheduleMember = []byte(`"schedule":`) //nolint:gochecknoglobals // a constant

// knownSchedule returns the schedule in a run's record, if it is known without reading the log: the
// frame has the record, or no version of the workflow has a schedule.
func (s *Scheduler) knownSchedule(f *frame.Frame) (sched *wire.Schedule, known bool) {
	if f.Kind != subject.Start || len(f.Body) == 0 {
		return nil, !s.deps.Scheduled(f.Run.Tenant, f.Run.WorkflowID)
	}
	if !bytes.Contains(f.Body, scheduleMember) {
		return nil, true
	}
	return scheduleIn(f), true
}

// readSchedule returns the schedule in the record of a run's log. Errors: runlog.ErrUnavailable.
func (s *Scheduler) readSchedule(ctx context.Context, r subject.Run) (*wire.Schedule, error) {
	first, err := s.deps.Log.First(ctx, r)
	switch {
	case errors.Is(err, runlog.ErrUnavailable):
		return nil, err
	case err != nil: // damaged or missing: the executor reports it
		return nil, nil //nolint:nilerr // see above
	default:
		return scheduleIn(first), nil
	}
}

// scheduleIn returns the schedule in the record of a first frame. The executor reports an unreadable
// record.
func scheduleIn(f *frame.Frame) *wire.Schedule {
	rec, err := f.Record()
	if err != nil {
		return nil
	}
	return rec.Schedule
}
