package deliver

import (
	"hash/fnv"
	"strconv"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/services/gateway/webhook/outbox"
)

// Policy says how often and how fast deliveries are tried.
type Policy struct {
	Limits Limits
	// Timeout bounds one attempt.
	Timeout time.Duration
	// FirstRetry is the wait after the first failure; it doubles, up to MaxRetry.
	FirstRetry, MaxRetry time.Duration
	// MaxAttempts and MaxAge are when an event is given up, whichever comes first; it
	// is tried once at least.
	MaxAttempts int
	MaxAge      time.Duration
	// Lease is how long a lane stays with a worker that says nothing.
	Lease time.Duration
}

// DefaultPolicy gives an event three days.
func DefaultPolicy() Policy {
	return Policy{
		Limits:  Limits{Total: 128, PerTenant: 32, PerWebhook: 8},
		Timeout: 5 * time.Second, FirstRetry: 5 * time.Second, MaxRetry: time.Hour, MaxAttempts: 24, MaxAge: 72 * time.Hour,
		Lease: 15 * time.Second,
	}
}

// backoff is the wait after a number of failures: within a quarter of the doubled wait,
// so that what failed together does not come back together. The same failure of the
// same event always waits the same time.
func (p Policy) backoff(id outbox.ID, seq, failures int) time.Duration {
	d := p.MaxRetry
	if shift := failures - 1; shift < 32 && p.FirstRetry<<shift < d && p.FirstRetry<<shift > 0 {
		d = p.FirstRetry << shift
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Webhook + "/" + id.RunID + "/" + strconv.Itoa(seq) + "/" + strconv.Itoa(failures))) // a hash takes everything
	const parts = 1024
	share := float64(h.Sum64()%parts) / parts
	return d - d/4 + time.Duration(share*float64(d/2))
}

// Counts are what was done since the start.
type Counts struct{ Delivered, Failed, Dead atomic.Int64 }
