package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/retry"
)

// Handler handles lost and expired leases.
type Handler interface {
	// Lost is called when this process lost its lease: its sessions must stop. The process has a
	// new id afterwards.
	Lost(process string)
	// Orphaned enqueues the runs of a process whose lease is over. It is called again until it
	// returns nil.
	Orphaned(ctx context.Context, process string) error
}

// retryRenewal is the pause after a renewal that failed.
const retryRenewal = 200 * time.Millisecond

// Run renews the lease, observes the others and expires those that are silent, until ctx ends.
// Open must have been called.
func (t *Table) Run(ctx context.Context, h Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	ready := make(chan struct{})
	wg.Go(func() { t.observe(ctx, ready) })
	wg.Go(func() {
		select {
		case <-ready:
			t.markKnown()
			t.takeOverSilent(ctx, h)
		case <-ctx.Done():
		}
	})
	for pause := t.interval(); lifecycle.Wait(ctx, pause); {
		pause = t.interval()
		if t.isReleased() { // released: nothing to renew
			continue
		}
		bounded, done := context.WithTimeout(ctx, t.cfg.Duration)
		err := t.renew(bounded)
		done()
		switch {
		case err == nil:
		case errors.Is(err, ErrLost):
			lost := t.newIdentity()
			t.log.Error("dispatcher lease lost; stopping its runs", "process", lost, "process_now", t.Process())
			h.Lost(lost)
			pause = 0
		case ctx.Err() == nil:
			t.log.Warn("dispatcher lease not renewed; retrying", "error", err)
			pause = min(pause, retryRenewal)
		}
	}
	return ctx.Err()
}

// isReleased reports that this process released its lease.
func (t *Table) isReleased() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own.State.isOver()
}

func (t *Table) interval() time.Duration { return t.cfg.Duration / Renewals }

// observe tracks the other leases. ready is closed once all present ones are known.
func (t *Table) observe(ctx context.Context, ready chan struct{}) {
	for range retry.Every(retryRenewal).Tries(ctx) {
		err := t.store.Watch(ctx, prefix, ready, t.applyEntry)
		if ctx.Err() == nil {
			t.log.Warn("dispatcher leases not observable; retrying", "error", err)
		}
		select {
		case <-ready:
			ready = nil // Watch closes it only once
		default:
		}
	}
}

func (t *Table) applyEntry(e kv.Entry) {
	process := strings.TrimPrefix(e.Key, prefix)
	t.mu.Lock()
	defer t.mu.Unlock()
	if process == t.own.Process {
		return
	}
	if e.Value == nil {
		t.forgetLease(process)
		return
	}
	r, err := parse(e)
	if err != nil { // an unreadable lease expires like any other
		r = Record{Process: process, State: Held, DurationMs: t.cfg.Duration.Milliseconds()}
	}
	t.recordObservation(process, r, e.Revision)
}

// recordObservation stores an observed lease. Call it with the lock.
func (t *Table) recordObservation(process string, r Record, revision uint64) {
	s := t.others[process]
	if s != nil && s.revision >= revision {
		return
	}
	t.others[process] = &observation{record: r, revision: revision, at: time.Now(), renewals: t.renewals}
	if s == nil || s.record.State.isOver() != r.State.isOver() {
		t.notify()
	}
}

// forgetLease removes a lease without a record. Call it with the lock.
func (t *Table) forgetLease(process string) {
	delete(t.others, process)
	t.notify()
}

// takeOverSilent expires silent leases and enqueues the runs of their processes.
func (t *Table) takeOverSilent(ctx context.Context, h Handler) {
	for ; ctx.Err() == nil; lifecycle.Wait(ctx, t.interval()/2) {
		for _, s := range t.silentLeases() {
			switch _, err := t.expire(ctx, s.record.Process, s.revision); {
			case err == nil:
				t.log.Warn("dispatcher lease expired: its runs are taken over", "process", s.record.Process,
					"host", s.record.Host, "last_renewal", s.record.Renewed, "silent", t.silence(&s))
			case errors.Is(err, kv.ErrConflict):
				t.recheck(ctx, s.record.Process)
			}
		}
		for _, s := range t.leasesToHandOver() {
			if err := h.Orphaned(ctx, s.record.Process); err != nil {
				if ctx.Err() == nil {
					t.log.Warn("runs of a dead dispatcher not handed on; retrying", "process", s.record.Process, "error", err)
				}
				continue
			}
			if err := t.store.Delete(ctx, prefix+s.record.Process, s.revision); err != nil && !errors.Is(err, kv.ErrConflict) && ctx.Err() == nil {
				t.log.Warn("lease record of a dead dispatcher not deleted; retrying", "process", s.record.Process, "error", err)
			}
		}
	}
}

// silence is how long a process has been silent, for people: since its last renewal, which may be long
// before this process observed it. The renewal has the time of its holder's clock, so it is at least the
// observed time.
func (t *Table) silence(s *observation) time.Duration {
	observed := time.Since(s.at)
	if s.record.Renewed.IsZero() { // the record is unreadable
		return observed.Round(time.Millisecond)
	}
	return max(observed, t.clock().Sub(s.record.Renewed)).Round(time.Millisecond)
}

// recheck removes a lease whose deletion was missed, for example during an outage of the store.
func (t *Table) recheck(ctx context.Context, process string) {
	if _, _, err := t.read(ctx, process); errors.Is(err, kv.ErrNotFound) {
		t.mu.Lock()
		t.forgetLease(process)
		t.mu.Unlock()
	}
}

// silentLeases are the leases that were not renewed for their duration.
func (t *Table) silentLeases() []observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.isValid(now) { // the store itself may be unavailable
		return nil
	}
	return t.selectLeases(func(s *observation) bool {
		if s.record.State.isOver() {
			return false
		}
		return t.cfg.Sole || now.Sub(s.at) >= s.record.Duration() && t.renewals-s.renewals >= Renewals
	})
}

// leasesToHandOver are the leases that are over and whose runs this process enqueues: its own
// expiries immediately, others after a while.
func (t *Table) leasesToHandOver() []observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	return t.selectLeases(func(s *observation) bool {
		if !s.record.State.isOver() {
			return false
		}
		mine := s.record.By == t.own.Process || s.record.State == Released && t.hasSmallestID()
		return mine || now.Sub(s.at) >= 2*t.cfg.Duration
	})
}

// hasSmallestID reports that this process has the smallest id of the live ones. Call it with the
// lock.
func (t *Table) hasSmallestID() bool {
	for id, s := range t.others {
		if id < t.own.Process && s.record.State == Held {
			return false
		}
	}
	return true
}

// selectLeases returns the leases that meet a condition, ordered by id. Call it with the lock.
func (t *Table) selectLeases(are func(*observation) bool) []observation {
	var out []observation
	for _, s := range t.others {
		if are(s) {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b observation) int { return strings.Compare(a.record.Process, b.record.Process) })
	return out
}

// expire ends a lease at a revision; 0 means without a record. Errors: kv.ErrConflict if it was
// renewed.
func (t *Table) expire(ctx context.Context, process string, revision uint64) (Record, error) {
	t.mu.Lock()
	r := Record{Process: process, DurationMs: t.cfg.Duration.Milliseconds()}
	if s := t.others[process]; s != nil && s.revision == revision {
		r = s.record
	}
	r.State, r.By = Expired, t.own.Process
	t.mu.Unlock()
	next, err := t.write(ctx, r, revision)
	if err != nil {
		return Record{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordObservation(process, r, next)
	return r, nil
}

// Alive reports whether a process may act on the runs that it owns. False is final, because the
// process cannot renew any more. Errors: kv.ErrUnavailable.
func (t *Table) Alive(ctx context.Context, process string) (bool, error) {
	t.mu.Lock()
	own, s := process == t.own.Process, t.others[process]
	over := s != nil && s.record.State.isOver()
	t.mu.Unlock()
	switch {
	case own:
		return true, nil
	case over:
		return false, nil
	case s != nil:
		return true, nil
	}
	// The record of a new process may be unknown here. Only a write is conclusive: a read may be
	// served by a lagging replica.
	_, err := t.expire(ctx, process, 0)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, kv.ErrConflict):
		r, _, err := t.read(ctx, process)
		if err != nil {
			return true, err
		}
		return !r.State.isOver(), nil
	default:
		return true, err
	}
}

// Lookup returns the lease of a process, for operators. Errors: kv.ErrNotFound, kv.ErrUnavailable.
func (t *Table) Lookup(ctx context.Context, process string) (Record, error) {
	r, _, err := t.read(ctx, process)
	return r, err
}

// All returns the leases of all dispatchers that are not over, this one first, for operators.
func (t *Table) All() []Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []Record{t.own}
	for _, o := range t.selectLeases(func(o *observation) bool { return !o.record.State.isOver() }) {
		out = append(out, o.record)
	}
	return out
}

// Live is the number of dispatchers that execute runs, including this one.
func (t *Table) Live() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return 1 + len(t.selectLeases(func(s *observation) bool { return s.record.State == Held }))
}
