package admission

import (
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"waybill.dev/waybill/internal/lru"
)

// maxNames limits the number of token buckets in one cache. An evicted name starts with a full bucket.
const maxNames = 100_000

// RateLimiter limits the rate of events for each name. It is safe for concurrent use.
type RateLimiter struct {
	limit rate.Limit
	burst int
	clock func() time.Time

	mu      sync.Mutex // guards buckets
	buckets *lru.Cache[[sha256.Size]byte, *rate.Limiter]
}

// NewRateLimiter makes a limiter that admits bursts of burst events and perSecond events on
// average; 0 per second means no limit.
func NewRateLimiter(perSecond float64, burst int, clock func() time.Time) *RateLimiter {
	return &RateLimiter{
		limit:   rate.Limit(perSecond),
		burst:   max(burst, 1),
		clock:   clock,
		buckets: lru.New[[sha256.Size]byte, *rate.Limiter](maxNames),
	}
}

// Take counts one event of a name; undo takes it back. If wait is positive, the event is
// over the limit and not counted; it would be admitted after wait.
func (l *RateLimiter) Take(name string) (undo func(), wait time.Duration) {
	if l.limit <= 0 {
		return func() {}, 0
	}
	now := l.clock()
	res := l.bucket(name).ReserveN(now, 1)
	if wait = res.DelayFrom(now); wait > 0 {
		res.CancelAt(now)
		return func() {}, wait
	}
	return func() { res.CancelAt(now) }, 0
}

func (l *RateLimiter) bucket(name string) *rate.Limiter {
	key := sha256.Sum256([]byte(name))
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets.Get(key)
	if !ok {
		b = rate.NewLimiter(l.limit, l.burst)
		l.buckets.Put(key, b, 1)
	}
	return b
}
