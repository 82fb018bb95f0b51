package limit

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Call is a request to call a provider.
type Call struct {
	Provider, Tenant, Model string
	// Credential is the tenant's own key; empty for the host's.
	Credential provider.Secret
	// Tokens is an estimate of the call's tokens, prompt and answer together.
	Tokens int
	// Impatient calls do not wait for the end of a hold: another provider can be called.
	Impatient bool
}

// Outcome is how an admitted call ended.
type Outcome struct {
	// Tokens are the tokens used; negative if unknown.
	Tokens int
	// Refused is the error of a provider without capacity for the call; nil otherwise.
	Refused *provider.Error
	// Failed is the error of a call without an answer, of any kind.
	Failed *provider.Error
	// Aborted means that the call was not made, or was given up before its outcome was known.
	Aborted bool
}

// Observer receives metrics. It is called with a lock held and must not block.
type Observer interface {
	// Queued reports how long a call waited and whether it was admitted.
	Queued(provider string, waited time.Duration, admitted bool)
	// InFlight reports the number of calls in flight and waiting.
	InFlight(provider string, calls, waiting int)
	// Holds reports the number of held pairs of model and credential.
	Holds(provider string, pairs int)
	// Limits reports this process's share of the limits; 0 means no limit.
	Limits(provider string, calls int, requestsPerMinute, tokensPerMinute float64)
}

// Limiter admits calls within the limits of their providers. Other calls wait in one queue per
// provider: first in, first out within a tenant, and tenants in turn. The limits apply to all
// dispatchers; this process enforces its share.
type Limiter struct {
	settings *All
	observer Observer
	clock    func() time.Time
	jitter   func(limit time.Duration) time.Duration

	mu     sync.Mutex // guards what follows
	queues map[string]*queue
	share  Share
	// joined is when the share was first known. full is whether the buckets were full then.
	joined time.Time
	full   bool
}

// NewLimiter returns a limiter of a single dispatcher; a nil observer disables metrics.
func NewLimiter(settings *All, observer Observer, clock func() time.Time) *Limiter {
	if observer == nil {
		observer = noObserver{}
	}
	return &Limiter{
		settings: settings,
		observer: observer,
		clock:    clock,
		jitter:   rand.N[time.Duration],
		queues:   map[string]*queue{},
		share:    Alone,
		full:     true,
	}
}

type noObserver struct{}

func (noObserver) Queued(string, time.Duration, bool)   {}
func (noObserver) InFlight(string, int, int)            {}
func (noObserver) Holds(string, int)                    {}
func (noObserver) Limits(string, int, float64, float64) {}

// SetShare sets this process's share of the limits. The first known share decides the start: a
// single dispatcher starts with full buckets, one of several with empty ones, so that a restarted
// dispatcher adds nothing to the rates.
func (l *Limiter) SetShare(s Share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.share.Of == 0 && s.Of > 0 {
		l.joined, l.full = l.clock(), s.Of == 1
	}
	l.share = s
	for _, q := range l.queues {
		q.setShare(s, l.joined, l.full)
	}
}

// Acquire waits for room, or until ctx ends. The caller releases every slot. Errors: that of ctx,
// *HeldError.
func (l *Limiter) Acquire(ctx context.Context, c Call) (*Slot, error) {
	return l.queue(c.Provider).acquire(ctx, c)
}

func (l *Limiter) queue(provider string) *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[provider]
	if q == nil {
		q = &queue{
			provider: provider, settings: l.settings.For(provider), observer: l.observer, clock: l.clock, jitter: l.jitter,
			waiting: map[string][]*waiter{}, holds: map[key]*hold{},
		}
		q.setShare(l.share, l.joined, l.full)
		l.queues[provider] = q
	}
	return q
}

// queue is the queue of one provider.
type queue struct {
	provider string
	settings Settings
	observer Observer
	clock    func() time.Time
	jitter   func(limit time.Duration) time.Duration

	mu               sync.Mutex // guards all below
	share            Share
	requests, tokens *bucket
	inFlight         int
	waiting          map[string][]*waiter
	// turns are the waiting tenants, the next one first.
	turns []string
	timer *time.Timer
	holds map[key]*hold
	// last has the members of the state that describe the last calls.
	last State
}

type waiter struct {
	tenant string
	key    key
	tokens float64
	// parked means that the call waits for the end of a hold instead of in the queue; since is when
	// it first did.
	parked bool
	since  time.Time
	// patience is how long the call waits for the end of holds.
	patience time.Duration
	// held is why the call was rejected.
	held *HeldError
	done chan struct{} // closed when the call is admitted or rejected
}

// burstRequests is the divisor for the requests of a minute that can be made at one instant.
const burstRequests = 6

// limited reports whether the operator limits the calls.
func (q *queue) limited() bool {
	s := q.settings
	return s.MaxConcurrent > 0 || s.RequestsPerMinute > 0 || s.TokensPerMinute > 0
}

// setShare applies a share.
func (q *queue) setShare(s Share, joined time.Time, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.share.Of == 0
	q.share = s
	if s.Of == 0 {
		return
	}
	now := q.clock()
	if first {
		q.requests = newBucket(q.settings.RequestsPerMinute, 1.0/burstRequests, s.Of, joined)
		q.tokens = newBucket(q.settings.TokensPerMinute, 1, s.Of, joined)
		if full {
			q.requests.fillUp()
			q.tokens.fillUp()
		}
	}
	q.requests.setShare(now, s.Of)
	q.tokens.setShare(now, s.Of)
	calls := 0
	if q.settings.MaxConcurrent > 0 {
		calls = s.calls(q.settings.MaxConcurrent)
	}
	q.observer.Limits(q.provider, calls, q.requests.perMinute(), q.tokens.perMinute())
	q.admitWaiting()
}

// hasRoom reports whether another call can be in flight, regardless of rates.
func (q *queue) hasRoom() bool {
	switch {
	case !q.limited():
		return true
	case q.share.Of == 0:
		return false
	default:
		return q.settings.MaxConcurrent <= 0 || q.inFlight < q.share.calls(q.settings.MaxConcurrent)
	}
}

func (q *queue) acquire(ctx context.Context, c Call) (*Slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := q.clock()
	w := &waiter{tenant: c.Tenant, key: keyOf(c), tokens: float64(max(c.Tokens, 0)), patience: maxHeldWait, done: make(chan struct{})}
	if c.Impatient {
		w.patience = 0
	}
	q.enter(w)
	select {
	case <-w.done:
	case <-ctx.Done():
		if q.leave(w, q.clock().Sub(began)) {
			return nil, ctx.Err()
		}
	}
	q.mu.Lock()
	q.observer.Queued(q.provider, q.clock().Sub(began), w.held == nil)
	q.mu.Unlock()
	if w.held != nil {
		return nil, w.held
	}
	return &Slot{q, w}, nil
}

func (q *queue) enter(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[w.tenant]) == 0 {
		q.turns = append(q.turns, w.tenant)
	}
	q.waiting[w.tenant] = append(q.waiting[w.tenant], w)
	q.admitWaiting()
}

// leave removes a waiter from the queue; false if it was admitted or rejected before.
func (q *queue) leave(w *waiter, waited time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting[w.tenant], w); i >= 0 {
		q.waiting[w.tenant] = slices.Delete(q.waiting[w.tenant], i, i+1)
		if len(q.waiting[w.tenant]) == 0 {
			delete(q.waiting, w.tenant)
			q.turns = slices.DeleteFunc(q.turns, func(t string) bool { return t == w.tenant })
		}
	} else if !w.parked {
		return false
	}
	q.leaveHold(w)
	q.observer.Queued(q.provider, waited, false)
	q.admitWaiting() // the next call may need fewer tokens
	return true
}

// admitWaiting admits calls while there is room, and sets a timer for the next one that only needs
// time. The caller holds the lock.
func (q *queue) admitWaiting() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	for len(q.turns) > 0 && q.hasRoom() {
		w, now := q.waiting[q.turns[0]][0], q.clock()
		if q.parkIfHeld(w) {
			q.dequeue(false)
			continue
		}
		if wait := max(q.requests.wait(now, 1), q.tokens.wait(now, w.tokens)); wait > 0 {
			q.timer = time.AfterFunc(wait, q.admitOnTimer)
			break
		}
		q.requests.take(now, 1)
		q.tokens.take(now, w.tokens)
		q.inFlight++
		q.dequeue(true)
		if h := q.holds[w.key]; h != nil && h.probe == w {
			q.setTimer(h, probeTime)
		}
		close(w.done)
	}
	waiting := 0
	for _, list := range q.waiting {
		waiting += len(list)
	}
	for _, h := range q.holds {
		waiting += len(h.parked)
	}
	q.observer.InFlight(q.provider, q.inFlight, waiting)
	q.observer.Holds(q.provider, len(q.holds))
}

// dequeue removes the first call of the next tenant. used means that this was the tenant's turn.
func (q *queue) dequeue(used bool) {
	tenant := q.turns[0]
	q.waiting[tenant] = q.waiting[tenant][1:]
	switch {
	case len(q.waiting[tenant]) == 0:
		delete(q.waiting, tenant)
		q.turns = q.turns[1:]
	case used:
		q.turns = append(q.turns[1:], tenant)
	}
}

func (q *queue) admitOnTimer() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.admitWaiting()
}

// Slot is the admission of one call.
type Slot struct {
	q *queue
	w *waiter
}

// Release ends the call, corrects the estimate by the actual usage, and holds similar calls if the
// provider refused this one.
func (s *Slot) Release(o Outcome) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if o.Tokens >= 0 {
		s.q.tokens.settle(s.q.clock(), s.w.tokens, float64(o.Tokens))
	}
	s.q.inFlight--
	s.q.remember(o)
	s.q.settleHold(s.w, o)
	s.q.admitWaiting()
}
