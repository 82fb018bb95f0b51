package queue

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
)

// pick gives free slots to waiting runs until ctx ends.
func (k *Desk) pick(ctx context.Context) {
	t := time.NewTicker(k.cfg.Tick)
	defer t.Stop()
	for {
		for ctx.Err() == nil && k.pickOne() {
		}
		if k.crowded() { // to look through many lanes for nothing takes a while
			lifecycle.Wait(ctx, crowdedPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
		case <-t.C:
		}
	}
}

const (
	crowd        = 1000
	crowdedPause = 5 * time.Millisecond
)

// crowded reports that many runs wait.
func (k *Desk) crowded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.Len() > crowd
}

// pickOne claims the next waiting run in the background, if a slot is free for one.
func (k *Desk) pickOne() bool {
	k.mu.Lock()
	t, ok := k.book.Next(k.deps.Clock(), k.slots)
	if !ok {
		k.mu.Unlock()
		return false
	}
	e := k.entries[t.ID]
	k.slots.Take(t.Tenant)
	k.mine[t.ID] = true
	k.mu.Unlock()
	k.write(func(ctx context.Context) { k.claim(ctx, t.ID, t.Lane, e) })
	return true
}

// claim makes the ticket this process's and hands the run to the executor.
func (k *Desk) claim(ctx context.Context, key, lane string, e entry) {
	d := &delivery{desk: k, process: k.deps.Leases.Process(), key: key, ticket: e.ticket, rev: e.rev, frame: e.frame()}
	l := limitsOf(e.run(), e.Kind, e.Charged, e.Schedule, k.deps.Tenant(e.Tenant))
	why, wait, err := k.pass(ctx, d, l)
	if err == nil && why == "" {
		if err = k.take(ctx, d, len(l.rates) > 0); err == nil {
			k.metrics.waited(e.Reason, k.deps.Clock().Sub(time.UnixMilli(e.ParkedMs)))
			k.ready <- d
			return
		}
		d.returnPermits(ctx)
	}
	k.block(e.Tenant, lane, why, wait, err)
	k.give(e.Tenant)
	switch {
	case errors.Is(err, errLostTicket):
		k.gone(key, e.rev)
	case err != nil && ctx.Err() == nil:
		k.deps.Logger.Warn("waiting run not claimed", "run_id", e.RunID, "error", err)
	}
	k.disown(key)
}

// block has a lane wait for what it lacks.
func (k *Desk) block(tenant, lane string, why Reason, wait time.Duration, err error) {
	if err != nil && !errors.Is(err, errLostTicket) {
		why, wait = Capacity, queueRetry
	}
	if why == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.book.Block(tenant, lane, k.deps.Clock().Add(wait))
}

// take writes this process into the ticket. A ticket that waited for a limit moves to those of runs
// in execution, by which the dispatchers are scaled. Errors: errLostTicket, kv.ErrUnavailable.
func (k *Desk) take(ctx context.Context, d *delivery, charged bool) error {
	d.ticket.Holder, d.ticket.NotBeforeMs = d.process, 0
	d.ticket.Charged = d.ticket.Charged || charged
	value, err := d.ticket.value()
	if err != nil {
		return err
	}
	from, rev, to := d.key, d.rev, d.ticket.key(readyPrefix)
	if from == to {
		d.rev, err = k.deps.Tickets.Update(ctx, to, value, rev)
		return lost(err)
	}
	there, err := k.deps.Tickets.Get(ctx, from)
	if errors.Is(err, kv.ErrNotFound) || err == nil && there.Revision != rev {
		return errLostTicket
	}
	if err != nil {
		return err
	}
	if !k.own(to) {
		return k.moved(ctx, from, rev)
	}
	if d.rev, err = k.deps.Tickets.Update(ctx, to, value, 0); err != nil {
		k.disown(to)
		if errors.Is(err, kv.ErrConflict) {
			return k.moved(ctx, from, rev)
		}
		return err
	}
	d.key = to
	if err := k.deps.Tickets.Delete(ctx, from, rev); err != nil {
		k.deps.Logger.Debug("ticket not deleted", "run_id", d.ticket.RunID, "error", err)
		k.disown(from)
	}
	return nil
}

// moved deletes a ticket that was moved before, and not deleted then: the run has another ticket.
// Errors: errLostTicket, or why it could not be deleted now.
func (k *Desk) moved(ctx context.Context, from string, rev uint64) error {
	if err := k.deps.Tickets.Delete(ctx, from, rev); err != nil && !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return errLostTicket
}

// own notes that this process executes the ticket; false: it does already.
func (k *Desk) own(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mine[key] {
		return false
	}
	k.mine[key] = true
	return true
}

// lost turns a conflict into errLostTicket: another dispatcher was faster.
func lost(err error) error {
	if errors.Is(err, kv.ErrConflict) {
		return errLostTicket
	}
	return err
}

// gone drops a ticket that could not be claimed at its revision, unless a later one has been seen:
// the watch brings what there is.
func (k *Desk) gone(key string, rev uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.entries[key]; ok && e.rev == rev {
		k.drop(key)
	}
}
