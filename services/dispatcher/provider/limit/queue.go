package limit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Call asks for room to call a provider.
type Call struct {
	Provider, Tenant string
	// Tokens is an estimate of what the call uses, prompt and answer together.
	Tokens int
}

// Observer counts calls. It is called with a lock held and does not block.
type Observer interface {
	// Queued reports how long a call waited for room, and whether it got any.
	Queued(provider string, waited time.Duration, admitted bool)
	// InFlight reports how many calls are in flight and how many wait.
	InFlight(provider string, calls, waiting int)
}

// Limiter admits calls within the limits of their providers. Calls beyond a limit wait in
// one queue per provider: first in, first out within a tenant, and one call of each tenant
// in turn. The limits are those of this process.
type Limiter struct {
	settings *All
	observer Observer
	clock    func() time.Time

	mu     sync.Mutex // guards queues
	queues map[string]*queue
}

// NewLimiter makes a limiter; a nil observer counts nothing.
func NewLimiter(settings *All, observer Observer, clock func() time.Time) *Limiter {
	if observer == nil {
		observer = noObserver{}
	}
	return &Limiter{settings: settings, observer: observer, clock: clock, queues: map[string]*queue{}}
}

type noObserver struct{}

func (noObserver) Queued(string, time.Duration, bool) {}
func (noObserver) InFlight(string, int, int)          {}

// Acquire waits for room, or until ctx ends. The caller ends every slot with Release.
func (l *Limiter) Acquire(ctx context.Context, c Call) (*Slot, error) {
	return l.queue(c.Provider).acquire(ctx, c)
}

func (l *Limiter) queue(provider string) *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[provider]
	if q == nil {
		q = newQueue(provider, l.settings.Of(provider), l.observer, l.clock)
		l.queues[provider] = q
	}
	return q
}

// queue is that of one provider.
type queue struct {
	provider string
	max      int
	observer Observer
	clock    func() time.Time

	mu               sync.Mutex // guards all below
	requests, tokens *bucket
	inFlight         int
	waiting          map[string][]*waiter
	// turns are the tenants that wait, the next one first.
	turns []string
	timer *time.Timer
}

type waiter struct {
	tokens float64
	admit  chan struct{} // closed when the call has room
}

// burstRequests is the part of a minute's requests that can be made at one instant.
const burstRequests = 6

func newQueue(provider string, s Settings, o Observer, clock func() time.Time) *queue {
	now := clock()
	return &queue{
		provider: provider, max: s.MaxConcurrent, observer: o, clock: clock, waiting: map[string][]*waiter{},
		requests: newBucket(s.RequestsPerMinute, float64(s.RequestsPerMinute)/burstRequests, now),
		tokens:   newBucket(s.TokensPerMinute, float64(s.TokensPerMinute), now),
	}
}

func (q *queue) acquire(ctx context.Context, c Call) (*Slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := q.clock()
	w := &waiter{tokens: float64(max(c.Tokens, 0)), admit: make(chan struct{})}
	q.enter(c.Tenant, w)
	select {
	case <-w.admit:
	case <-ctx.Done():
		if q.leave(c.Tenant, w, q.clock().Sub(began)) {
			return nil, ctx.Err()
		}
	}
	q.mu.Lock()
	q.observer.Queued(q.provider, q.clock().Sub(began), true)
	q.mu.Unlock()
	return &Slot{q: q, tokens: w.tokens}, nil
}

func (q *queue) enter(tenant string, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[tenant]) == 0 {
		q.turns = append(q.turns, tenant)
	}
	q.waiting[tenant] = append(q.waiting[tenant], w)
	q.pump()
}

// leave takes a waiter out of the queue; false: it has been admitted.
func (q *queue) leave(tenant string, w *waiter, waited time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[tenant], w)
	if i < 0 {
		return false
	}
	q.waiting[tenant] = slices.Delete(q.waiting[tenant], i, i+1)
	if len(q.waiting[tenant]) == 0 {
		delete(q.waiting, tenant)
		q.turns = slices.DeleteFunc(q.turns, func(t string) bool { return t == tenant })
	}
	q.observer.Queued(q.provider, waited, false)
	q.pump() // the next call may need fewer tokens
	return true
}

// pump admits calls while there is room, and sets a timer for the next one that only needs
// time. The caller holds the lock.
func (q *queue) pump() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	for len(q.turns) > 0 && (q.max <= 0 || q.inFlight < q.max) {
		tenant := q.turns[0]
		w, now := q.waiting[tenant][0], q.clock()
		if wait := max(q.requests.wait(now, 1), q.tokens.wait(now, w.tokens)); wait > 0 {
			q.timer = time.AfterFunc(wait, q.tick)
			break
		}
		q.requests.take(now, 1)
		q.tokens.take(now, w.tokens)
		q.inFlight++
		q.turns = q.turns[1:]
		if q.waiting[tenant] = q.waiting[tenant][1:]; len(q.waiting[tenant]) > 0 {
			q.turns = append(q.turns, tenant)
		} else {
			delete(q.waiting, tenant)
		}
		close(w.admit)
	}
	waiting := 0
	for _, list := range q.waiting {
		waiting += len(list)
	}
	q.observer.InFlight(q.provider, q.inFlight, waiting)
}

func (q *queue) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pump()
}

// Slot is the room of one call.
type Slot struct {
	q      *queue
	tokens float64
}

// Release gives the room back and corrects the estimate by what the call used; a negative
// used leaves the estimate as it is.
func (s *Slot) Release(used int) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if used >= 0 {
		s.q.tokens.settle(s.q.clock(), s.tokens, float64(used))
	}
	s.q.inFlight--
	s.q.pump()
}
