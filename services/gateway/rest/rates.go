package rest

import (
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"waybill.dev/waybill/protocol/fault"
)

// maxCredentials bounds how many token buckets are kept; beyond it the oldest
// half is forgotten, which gives those credentials a fresh bucket.
const maxCredentials = 100_000

// rates bounds the requests of each credential, known or not: who guesses keys
// is slowed down, too.
type rates struct {
	limit rate.Limit
	burst int
	clock func() time.Time

	mu      sync.Mutex // guards buckets
	buckets map[[sha256.Size]byte]*rate.Limiter
}

func newRates(perSecond float64, burst int, clock func() time.Time) *rates {
	return &rates{limit: rate.Limit(perSecond), burst: max(burst, 1), clock: clock, buckets: map[[sha256.Size]byte]*rate.Limiter{}}
}

// take counts a request, or says how long to wait.
func (r *rates) take(credential string) error {
	if r.limit <= 0 {
		return nil
	}
	now := r.clock()
	res := r.bucket(credential).ReserveN(now, 1)
	wait := res.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	res.CancelAt(now)
	return fault.New(fault.RateLimited, "too many requests with this credential").
		With("scope", "key").With("limit", float64(r.limit)).With("retryAfterMs", wait.Milliseconds()).After(wait)
}

func (r *rates) bucket(credential string) *rate.Limiter {
	key := sha256.Sum256([]byte(credential))
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.buckets[key]; b != nil {
		return b
	}
	if len(r.buckets) >= maxCredentials {
		n := 0
		for k := range r.buckets {
			if n++; n > maxCredentials/2 {
				break
			}
			delete(r.buckets, k)
		}
	}
	b := rate.NewLimiter(r.limit, r.burst)
	r.buckets[key] = b
	return b
}
