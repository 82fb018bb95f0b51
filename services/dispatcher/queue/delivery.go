package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// delivery is a run for the executor, from the queue (inner is set) or from a ticket.
type delivery struct {
	scheduler *Scheduler
	inner     runlog.Delivery
	frame     *frame.Frame
	permits   []permit
	// process is the id of this process under which the ticket was claimed and the permits were
	// acquired; empty if neither was.
	process string
	// schedule is the schedule of a run from the queue.
	schedule *wire.Schedule

	key    string
	ticket ticket
	rev    uint64

	ended atomic.Bool // Ack, Retry or Return was called
	done  sync.Once
}

// Frame is the frame that enqueued the run. The frame of a ticket has no body.
func (d *delivery) Frame() *frame.Frame { return d.frame }

// Redelivered is true for a ticket, because its run is read from the log.
func (d *delivery) Redelivered() bool { return d.inner == nil || d.inner.Redelivered() }

// Process is the id under which the run may be executed: permits are void once its lease is lost.
// See runlog.ProcessOf.
func (d *delivery) Process() string { return d.process }

// errLeaseLost: another process may have the ticket.
var errLeaseLost = errors.New("ticket was claimed under a lease that is lost")

// Extend reports that the run is still executed. A ticket needs no write, because the process's
// lease covers it.
func (d *delivery) Extend() error {
	if d.inner != nil {
		return d.inner.Extend()
	}
	if d.process != d.scheduler.deps.Leases.Process() {
		return errLeaseLost
	}
	return nil
}

// Ack reports that the run needs no dispatcher until the next wake.
func (d *delivery) Ack() error {
	d.ended.Store(true)
	if d.inner != nil {
		return d.inner.Ack()
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := d.scheduler.deps.Tickets.Delete(ctx, d.key, d.rev); err != nil {
		d.scheduler.releaseMine(d.key)
		return fmt.Errorf("delete ticket of run %s: %w", d.ticket.RunID, err)
	}
	return nil // it stays in mine until the watch reports the deletion
}

// Retry enqueues the run for any dispatcher, after a pause.
func (d *delivery) Retry() error {
	d.ended.Store(true)
	if d.inner != nil {
		return d.inner.Retry()
	}
	return d.retryTicket()
}

func (d *delivery) retryTicket() error {
	t := d.ticket
	t.Tries++
	t.NotBeforeMs = d.scheduler.deps.Clock().Add(runlog.RetryAfter(d.scheduler.cfg.RetryDelay, t.Tries)).UnixMilli()
	return d.handBack(t)
}

// Tries is the number of deliveries of the run, including this one.
func (d *delivery) Tries() int {
	if d.inner != nil {
		return d.inner.Tries()
	}
	return d.ticket.Tries + 1
}

// Return enqueues the run for another dispatcher without a pause: this one stops, and the run is
// sound.
func (d *delivery) Return() error {
	d.ended.Store(true)
	if d.inner == nil {
		return d.handBack(d.ticket)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	d.scheduler.park(ctx, d.inner, Capacity, d.schedule)
	return nil
}

// handBack writes the ticket as one that can be claimed.
func (d *delivery) handBack(t ticket) error {
	s := d.scheduler
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	t.Holder, t.Reason = "", Capacity
	value, err := t.value()
	if err == nil {
		var rev uint64
		if rev, err = s.deps.Tickets.Update(ctx, d.key, value, d.rev); err == nil {
			s.applyTicket(kv.Entry{Key: d.key, Value: value, Revision: rev})
		}
	}
	s.releaseMine(d.key)
	if err != nil {
		return fmt.Errorf("hand back ticket of run %s: %w", d.ticket.RunID, err)
	}
	return nil
}

// Done frees the slot and the permits of the run, however its execution ended. A ticket whose
// delivery was not ended is handed back, as the queue does with its own deliveries after a while.
func (d *delivery) Done() {
	d.done.Do(func() {
		if d.inner == nil && !d.ended.Load() {
			if err := d.retryTicket(); err != nil {
				d.scheduler.deps.Logger.Debug("ticket not handed back", "run_id", d.ticket.RunID, "error", err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		d.returnPermits(ctx)
		d.scheduler.freeSlot(d.frame.Run.Tenant)
	})
}

func (d *delivery) returnPermits(ctx context.Context) {
	for _, p := range d.permits {
		d.scheduler.permits.release(ctx, p)
	}
	d.permits = nil
}
