package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
)

// Retry is the reason of a run that was handed back and waits for its next execution. No ticket has
// it.
const Retry Reason = "retry"

// Scope is where a limit is set.
type Scope string

// The scopes.
const (
	ScopeDispatcher Scope = "dispatcher" // the slots of a dispatcher
	ScopeTenant     Scope = "tenant"     // the tenant's limits
	ScopeWorkflow   Scope = "workflow"   // the settings of the workflow
)

// Wait is why a run is not executed.
type Wait struct {
	Reason Reason
	Scope  Scope
	// Limit is the number of slots, runs or starts; 0 for Retry.
	Limit int
	// Period is that of a rate limit.
	Period time.Duration
	// Keyed reports that the limit holds for each value of the workflow's key.
	Keyed bool
	// Since is when the run began to wait. Until is when it may be executed at the earliest; zero if
	// that depends on other runs.
	Since, Until time.Time
}

// Waits returns why runs of a tenant wait, for those that wait for a slot or a limit. Errors:
// kv.ErrUnavailable.
func (s *Scheduler) Waits(ctx context.Context, tenant string, runIDs []string) (map[string]Wait, error) {
	out := map[string]Wait{}
	starts := map[string]rateRecord{}
	for _, id := range runIDs {
		e, ok := s.findWaiting(tenant, id)
		if !ok {
			continue
		}
		w, err := s.explainWait(ctx, e, starts)
		if err != nil {
			return nil, fmt.Errorf("read limits of run %s: %w", id, err)
		}
		out[id] = w
	}
	return out, nil
}

// findWaiting finds the ticket of a run that no process executes. A run in execution with another
// ticket for a later wake does not wait. A ticket that is being claimed still waits, because its
// limits are not acquired yet.
func (s *Scheduler) findWaiting(tenant, runID string) (found entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.byRun[runKey{tenant, runID}] {
		e := s.entries[key]
		if !s.holders.isDead(e.Holder) {
			return entry{}, false
		}
		if !ok || e.Pos < found.Pos {
			found, ok = e, true
		}
	}
	return found, ok
}

// explainWait finds the limit that a ticket waits for now, which may differ from that at the start
// of the wait. starts are the rate records read so far.
func (s *Scheduler) explainWait(ctx context.Context, e entry, starts map[string]rateRecord) (Wait, error) {
	now := s.deps.Clock()
	since := time.UnixMilli(e.ParkedMs)
	if at := time.UnixMilli(e.NotBeforeMs); e.NotBeforeMs > 0 && at.After(now) {
		return Wait{Reason: Retry, Scope: ScopeDispatcher, Since: since, Until: at}, nil
	}
	l := limitsOf(e.run(), e.Kind, e.Charged, e.Schedule, s.deps.Tenant(e.Tenant))
	concurrency := func(p permitLimit) Wait {
		w := Wait{Reason: Concurrency, Scope: scopeOf(p.id, e), Limit: p.max, Since: since}
		w.Keyed = w.Scope == ScopeWorkflow && e.Schedule.Concurrency.Key != ""
		return w
	}
	rate := func(r rateLimit) Wait {
		w := Wait{Reason: Rate, Scope: scopeOf(r.id, e), Limit: r.max, Period: r.period, Since: since}
		w.Keyed = w.Scope == ScopeWorkflow && e.Schedule.Rate.Key != ""
		return w
	}
	for _, p := range l.permits {
		if s.permits.isUsedUp(p) {
			return concurrency(p), nil
		}
	}
	for _, r := range l.rates {
		wait, err := s.startsIn(ctx, r, starts, now)
		if err != nil {
			return Wait{}, err
		}
		if wait > 0 {
			w := rate(r)
			w.Until = now.Add(wait)
			return w, nil
		}
	}
	s.mu.Lock()
	fits := s.slots.Fits(e.Tenant)
	s.mu.Unlock()
	switch {
	case fits && e.Reason == Concurrency && len(l.permits) > 0: // behind other runs of the limit
		return concurrency(l.permits[0]), nil
	case fits && e.Reason == Rate && len(l.rates) > 0:
		return rate(l.rates[0]), nil
	default:
		return Wait{Reason: Capacity, Scope: ScopeDispatcher, Limit: s.cfg.Size, Since: since}, nil
	}
}

// startsIn is the time until a rate limit allows the next start.
func (s *Scheduler) startsIn(ctx context.Context, l rateLimit, read map[string]rateRecord, now time.Time) (time.Duration, error) {
	r, ok := read[l.id]
	if !ok {
		e, err := s.deps.Rates.Get(ctx, ratePrefix+l.id)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return 0, err
		}
		if err == nil && json.Unmarshal(e.Value, &r) != nil {
			r = rateRecord{}
		}
		read[l.id] = r
	}
	return r.wait(l, now), nil
}

// scopeOf is where the limit of an id is set.
func scopeOf(id string, e entry) Scope {
	if id == limitID(e.Tenant) {
		return ScopeTenant
	}
	return ScopeWorkflow
}

// runKey names a run among the tickets.
type runKey struct{ tenant, runID string }

// indexRun adds a ticket to the index of its run. Call it with the lock.
func (s *Scheduler) indexRun(key string, e entry) {
	run := runKey{e.Tenant, e.RunID}
	if s.byRun[run] == nil {
		s.byRun[run] = map[string]struct{}{}
	}
	s.byRun[run][key] = struct{}{}
}

// unindexRun removes a ticket from the index of its run. Call it with the lock.
func (s *Scheduler) unindexRun(key string, e entry) {
	run := runKey{e.Tenant, e.RunID}
	if delete(s.byRun[run], key); len(s.byRun[run]) == 0 {
		delete(s.byRun, run)
	}
}
