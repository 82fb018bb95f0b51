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
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// queueRetry is the pause after the queue could not be read.
const queueRetry = 200 * time.Millisecond

// fetch takes runs from the queue until ctx ends: to execute them while slots are free, and to make
// tickets of them while none is.
func (k *Desk) fetch(ctx context.Context) {
	for ctx.Err() == nil {
		if free := k.freeSlots(); free > 0 {
			k.deps.Queue.Want(free)
			k.fetchOne(ctx)
			continue
		}
		for n := k.leftOver(ctx); n > 0 && ctx.Err() == nil; n-- {
			k.deps.Queue.Want(min(n, maxAhead))
			k.fetchOne(ctx)
		}
	}
}

// maxAhead bounds the runs that are fetched ahead while the queue is emptied into tickets: they
// count as handed out until their tickets are there.
const maxAhead = 16

// freeSlots is how many slots a fetched run finds free; 0 while the queue lags.
func (k *Desk) freeSlots() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lagging {
		return 0
	}
	return k.slots.Free()
}

// fetchOne takes the next run from the queue.
func (k *Desk) fetchOne(ctx context.Context) {
	d, err := k.deps.Queue.Next(ctx)
	switch {
	case err == nil:
		k.admit(ctx, d)
	case ctx.Err() == nil:
		if !errors.Is(err, context.Canceled) { // the queue is closed: the process ends
			k.deps.Logger.Warn("dispatch queue not readable; trying again", "error", err)
		}
		lifecycle.Wait(ctx, queueRetry)
	}
}

// leftOver is how many runs wait in the queue although this dispatcher has no slot for them, after a
// pause: they become tickets. As long as another dispatcher has room the queue stays empty, and
// runs are left to it.
func (k *Desk) leftOver(ctx context.Context) int {
	k.mu.Lock()
	lagging := k.lagging
	k.mu.Unlock()
	if !lagging && !k.stuck(ctx) {
		return 0
	}
	bounded, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	d, err := k.deps.Queue.Depth(bounded)
	if err != nil || d.Waiting+d.Fetched == 0 {
		k.mu.Lock()
		k.lagging = false
		k.mu.Unlock()
		return 0
	}
	return d.Waiting + d.Fetched
}

// stuck reports that no slot comes free for a while.
func (k *Desk) stuck(ctx context.Context) bool {
	t := time.NewTimer(k.cfg.Stuck)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-k.freed:
		return false
	case <-t.C:
		return true
	}
}

// admit hands a run to the executor, or makes a ticket of it.
func (k *Desk) admit(ctx context.Context, d runlog.Delivery) {
	f := d.Frame()
	now := k.deps.Clock()
	s, err := k.scheduleOf(ctx, d)
	if err != nil {
		k.retry(d, err)
		return
	}
	l := limitsOf(f.Run, f.Kind, false, s, k.deps.Tenant(f.Run.Tenant))
	k.mu.Lock()
	if !d.Redelivered() && !f.Stored.IsZero() {
		k.lagging = now.Sub(f.Stored) > k.cfg.Lag
	}
	lined := !l.none() && (k.book.Lined(f.Run.Tenant, l.lane()) || k.full(l))
	fits := !lined && k.slots.Fits(f.Run.Tenant) && !k.book.Ready(f.Run.Tenant, now)
	if fits {
		k.slots.Take(f.Run.Tenant)
	}
	k.mu.Unlock()
	out := &delivery{desk: k, inner: d, frame: f, schedule: s}
	switch {
	case lined:
		k.write(func(ctx context.Context) { k.park(ctx, d, reasonOf(l), s) })
	case !fits:
		k.write(func(ctx context.Context) { k.park(ctx, d, Capacity, s) })
	case l.none():
		k.ready <- out
	default:
		k.write(func(ctx context.Context) { k.admitLimited(ctx, out, l, s) })
	}
}

// admitLimited hands out a run that has a slot, if its limits allow it.
func (k *Desk) admitLimited(ctx context.Context, d *delivery, l limits, s *wire.Schedule) {
	d.process = k.deps.Leases.Process()
	why, _, err := k.pass(ctx, d, l)
	switch {
	case err != nil:
		k.give(d.frame.Run.Tenant)
		k.retry(d.inner, err)
	case why != "":
		k.give(d.frame.Run.Tenant)
		k.park(ctx, d.inner, why, s)
	default:
		k.ready <- d
	}
}

// full reports whether a concurrency limit is used up, as far as this process knows.
func (k *Desk) full(l limits) bool { return slices.ContainsFunc(l.permits, k.permits.full) }

// limitPause is how long a lane is not looked at whose concurrency limit is used up, unless a permit
// comes free before.
const limitPause = 3 * time.Second

// reasonOf is what a run waits for that lines up behind others of its lane.
func reasonOf(l limits) Reason {
	if len(l.permits) > 0 {
		return Concurrency
	}
	return Rate
}

// pass takes the permits of a run and counts its start; why is set if a limit is used up, and wait
// how long to look away.
func (k *Desk) pass(ctx context.Context, d *delivery, l limits) (why Reason, wait time.Duration, err error) {
	if k.full(l) {
		return Concurrency, limitPause, nil
	}
	defer func() {
		if why != "" || err != nil {
			d.returnPermits(ctx)
		}
	}()
	for _, p := range l.permits {
		got, err := k.permits.acquire(ctx, p, d.frame.Run.RunID, d.process)
		if errors.Is(err, errLimited) {
			return Concurrency, limitPause, nil
		}
		if err != nil {
			return "", 0, err
		}
		d.permits = append(d.permits, got)
	}
	for _, r := range l.rates {
		if wait, err := charge(ctx, k.deps.Rates, r, d.frame.Run.RunID, k.deps.Clock); err != nil || wait > 0 {
			return Rate, wait, err
		}
	}
	return "", 0, nil
}

// park makes a ticket of a delivery and acknowledges it once the ticket is stored.
func (k *Desk) park(ctx context.Context, d runlog.Delivery, why Reason, s *wire.Schedule) {
	t := newTicket(d.Frame(), why, s, k.deps.Clock())
	value, err := t.value()
	if err == nil {
		_, err = k.deps.Tickets.Update(ctx, t.keyFor(), value, 0)
	}
	if err != nil && !errors.Is(err, kv.ErrConflict) { // a conflict: it is there already
		k.retry(d, err)
		return
	}
	if err == nil {
		k.metrics.parked.WithLabelValues(string(why)).Inc()
		k.deps.Logger.Debug("run waits", "run_id", t.RunID, "reason", why)
	}
	if err := d.Ack(); err != nil { // it is handed out again
		k.deps.Logger.Debug("delivery of a waiting run not ended", "run_id", t.RunID, "error", err)
	}
}

func (k *Desk) retry(d runlog.Delivery, why error) {
	k.deps.Logger.Warn("run handed back: it can neither be executed nor made to wait", "run_id", d.Frame().Run.RunID, "error", why)
	if err := d.Retry(); err != nil {
		k.deps.Logger.Debug("delivery not ended", "run_id", d.Frame().Run.RunID, "error", err)
	}
}

// scheduleMember is in every record with a schedule, which saves reading the others.
var scheduleMember = []byte(`"schedule":`) //nolint:gochecknoglobals // a constant

// scheduleOf is what the run's record says about when it is executed. Where no version of its
// workflow says anything, the log is not read.
func (k *Desk) scheduleOf(ctx context.Context, d runlog.Delivery) (*wire.Schedule, error) {
	f := d.Frame()
	if f.Kind == subject.Start && len(f.Body) > 0 {
		if !bytes.Contains(f.Body, scheduleMember) {
			return nil, nil
		}
		rec, err := f.Record()
		if err != nil {
			return nil, nil //nolint:nilerr // the executor says what is wrong with it
		}
		return rec.Schedule, nil
	}
	if !k.deps.Scheduled(f.Run.Tenant, f.Run.WorkflowID) {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	first, err := k.deps.Log.First(bounded, f.Run)
	if errors.Is(err, runlog.ErrUnavailable) {
		return nil, err
	}
	if err != nil { // damaged or gone: the executor says so
		return nil, nil //nolint:nilerr // see above
	}
	rec, err := first.Record()
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return rec.Schedule, nil
}
