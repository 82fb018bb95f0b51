package queue

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
)

// assignSlots assigns free slots to waiting runs until ctx ends.
func (s *Scheduler) assignSlots(ctx context.Context) {
	t := time.NewTimer(s.cfg.Tick)
	defer t.Stop()
	var checked time.Time
	for {
		if now := time.Now(); now.Sub(checked) >= s.cfg.Tick {
			checked = now
			s.applySettings()
		}
		for ctx.Err() == nil && s.assignOne() {
		}
		waiting := s.countWaiting()
		if waiting > manyWaiting { // scanning many lanes takes time
			lifecycle.Wait(ctx, manyWaitingPause)
		}
		if waiting > 0 {
			t.Reset(s.cfg.Tick)
		} else {
			t.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-t.C:
		}
	}
}

const (
	manyWaiting      = 1000
	manyWaitingPause = 5 * time.Millisecond
)

func (s *Scheduler) countWaiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.Len()
}

// assignOne claims the next waiting run in the background, if a slot is free for it.
func (s *Scheduler) assignOne() bool {
	s.mu.Lock()
	t, ok := s.book.Next(s.deps.Clock(), s.slots)
	if !ok {
		s.mu.Unlock()
		return false
	}
	e := s.entries[t.ID]
	s.slots.Acquire(t.Tenant)
	s.mine[t.ID] = true
	s.mu.Unlock()
	s.runWrite(func(ctx context.Context) { s.claimRun(ctx, t.ID, t.Lane, e) })
	return true
}

// claimRun claims the ticket for this process and hands the run to the executor. If that fails, or
// panics, the slot is free again.
func (s *Scheduler) claimRun(ctx context.Context, key, lane string, e entry) {
	d := &delivery{
		scheduler: s,
		process:   s.deps.Leases.Process(),
		key:       key,
		ticket:    e.ticket,
		rev:       e.rev,
		frame:     e.frame(),
	}
	if e.Holder != "" && e.Holder != d.process { // its holder died
		d.ticket.Tries++
	}
	handedOut := false
	defer func() {
		if !handedOut {
			d.returnPermits(ctx)
			s.freeSlot(e.Tenant)
			s.releaseMine(key)
		}
	}()
	l := limitsOf(e.run(), e.Kind, e.Charged, e.Schedule, s.deps.Tenant(e.Tenant))
	why, wait, err := s.acquireLimits(ctx, d, l)
	if err == nil && why == "" {
		err = s.claimTicket(ctx, d, len(l.rates) > 0)
	}
	switch {
	case err == nil && why == "":
		handedOut = true
		s.metrics.waited(e.Reason, s.deps.Clock().Sub(time.UnixMilli(e.ParkedMs)))
		s.ready <- d
		return
	case errors.Is(err, errLostTicket):
		s.dropIfUnchanged(key, e.rev)
	case err != nil && ctx.Err() == nil:
		s.deps.Logger.Warn("waiting run not claimed", "run_id", e.RunID, "error", err)
	}
	s.blockLane(e.Tenant, lane, why, wait, err)
}

// blockLane blocks a lane until its limit may allow a run.
func (s *Scheduler) blockLane(tenant, lane string, why Reason, wait time.Duration, err error) {
	if err != nil && !errors.Is(err, errLostTicket) {
		why, wait = Capacity, queueRetry
	}
	if why == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Block(tenant, lane, s.deps.Clock().Add(wait))
}

// claimTicket writes this process into the ticket. A ticket that waited for a limit moves to the
// prefix of runs in execution, by which the dispatchers are scaled. Errors: errLostTicket,
// kv.ErrUnavailable.
func (s *Scheduler) claimTicket(ctx context.Context, d *delivery, charged bool) error {
	d.ticket.Holder, d.ticket.NotBeforeMs = d.process, 0
	d.ticket.Charged = d.ticket.Charged || charged
	value, err := d.ticket.value()
	if err != nil {
		return err
	}
	from, rev, to := d.key, d.rev, d.ticket.key(readyPrefix)
	if from == to {
		d.rev, err = s.deps.Tickets.Update(ctx, to, value, rev)
		return asLostTicket(err)
	}
	there, err := s.deps.Tickets.Get(ctx, from)
	if errors.Is(err, kv.ErrNotFound) || err == nil && there.Revision != rev {
		return errLostTicket
	}
	if err != nil {
		return err
	}
	if !s.markMine(to) {
		return s.deleteMoved(ctx, from, rev)
	}
	if d.rev, err = s.deps.Tickets.Update(ctx, to, value, 0); err != nil {
		s.releaseMine(to)
		if errors.Is(err, kv.ErrConflict) {
			return s.deleteMoved(ctx, from, rev)
		}
		return err
	}
	d.key = to
	if err := s.deps.Tickets.Delete(ctx, from, rev); err != nil {
		s.deps.Logger.Debug("ticket not deleted", "run_id", d.ticket.RunID, "error", err)
		s.releaseMine(from)
	}
	return nil
}

// deleteMoved deletes a ticket that was moved earlier but not deleted: the run has another ticket.
// Errors: errLostTicket, or the error of the deletion.
func (s *Scheduler) deleteMoved(ctx context.Context, from string, rev uint64) error {
	if err := s.deps.Tickets.Delete(ctx, from, rev); err != nil && !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return errLostTicket
}

// markMine records that this process executes the ticket; false if it already does.
func (s *Scheduler) markMine(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine[key] {
		return false
	}
	s.mine[key] = true
	return true
}

// asLostTicket turns a conflict into errLostTicket: another dispatcher was faster.
func asLostTicket(err error) error {
	if errors.Is(err, kv.ErrConflict) {
		return errLostTicket
	}
	return err
}

// dropIfUnchanged drops a ticket that could not be claimed at its revision, unless the watch has a
// later one.
func (s *Scheduler) dropIfUnchanged(key string, rev uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok && e.rev == rev {
		s.dropEntry(key)
	}
}
