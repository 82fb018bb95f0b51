// Package throttle bounds how often something happens, for each of many names on its own.
package throttle

import (
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxNames bounds how many token buckets are kept; beyond it half of them are
// forgotten, which gives those names a fresh bucket.
const maxNames = 100_000

// Throttle counts by name. It is safe for concurrent use.
type Throttle struct {
	limit rate.Limit
	burst int
	clock func() time.Time

	mu      sync.Mutex // guards buckets
	buckets map[[sha256.Size]byte]*rate.Limiter
}

// New makes a throttle that lets burst happen at once, and perSecond in the long run;
// 0 per second: no bound.
func New(perSecond float64, burst int, clock func() time.Time) *Throttle {
	return &Throttle{limit: rate.Limit(perSecond), burst: max(burst, 1), clock: clock, buckets: map[[sha256.Size]byte]*rate.Limiter{}}
}

// PerSecond is the bound in the long run; 0: none.
func (t *Throttle) PerSecond() float64 { return float64(t.limit) }

// Take counts one for a name, and undo makes as if it had not happened. With a wait
// nothing is counted: it is how long until one would be.
func (t *Throttle) Take(name string) (undo func(), wait time.Duration) {
	if t.limit <= 0 {
		return func() {}, 0
	}
	now := t.clock()
	res := t.bucket(name).ReserveN(now, 1)
	if wait = res.DelayFrom(now); wait > 0 {
		res.CancelAt(now)
		return func() {}, wait
	}
	return func() { res.CancelAt(now) }, 0
}

func (t *Throttle) bucket(name string) *rate.Limiter {
	key := sha256.Sum256([]byte(name))
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.buckets[key]; b != nil {
		return b
	}
	if len(t.buckets) >= maxNames {
		n := 0
		for k := range t.buckets {
			if n++; n > maxNames/2 {
				break
			}
			delete(t.buckets, k)
		}
	}
	b := rate.NewLimiter(t.limit, t.burst)
	t.buckets[key] = b
	return b
}
