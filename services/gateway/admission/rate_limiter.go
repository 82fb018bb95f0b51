package admission

import (
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxNames bounds how many token buckets are kept; beyond it half of them are
// forgotten, which gives those names a fresh bucket.
const maxNames = 100_000

// RateLimiter counts by name. It is safe for concurrent use.
type RateLimiter struct {
	limit rate.Limit
	burst int
	clock func() time.Time

	mu      sync.Mutex // guards buckets
	buckets map[[sha256.Size]byte]*rate.Limiter
}

// New makes a throttle that lets burst happen at once, and perSecond in the long run;
// 0 per second: no bound.
func NewRateLimiter(perSecond float64, burst int, clock func() time.Time) *RateLimiter {
	return &RateLimiter{limit: rate.Limit(perSecond), burst: max(burst, 1), clock: clock, buckets: map[[sha256.Size]byte]*rate.Limiter{}}
}

// PerSecond is the bound in the long run; 0: none.
func (l *RateLimiter) PerSecond() float64 { return float64(l.limit) }

// Take counts one for a name, and undo makes as if it had not happened. With a wait
// nothing is counted: it is how long until one would be.
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
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= maxNames {
		n := 0
		for k := range l.buckets {
			if n++; n > maxNames/2 {
				break
			}
			delete(l.buckets, k)
		}
	}
	b := rate.NewLimiter(l.limit, l.burst)
	l.buckets[key] = b
	return b
}
