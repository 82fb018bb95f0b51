package webhook

import (
	"hash/fnv"
	"strconv"
	"sync/atomic"
	"time"
)

// Policy sets limits, timeouts and retries of deliveries.
type Policy struct {
	// PerTenant limits the webhooks of a tenant, and separately the origins of its callback URLs.
	PerTenant int
	// PendingRuns limits the runs with pending deliveries of one webhook. Events of further runs are dropped.
	PendingRuns int
	Limits      Limits
	// Feed limits the frames that wait in memory to become deliveries.
	Feed FeedLimits
	// Timeout limits one attempt.
	Timeout time.Duration
	// FirstRetry is the wait after the first failure. It doubles with each failure, up to
	// MaxRetry.
	FirstRetry, MaxRetry time.Duration
	// MaxAttempts and MaxAge decide when an event is given up, whichever comes first. Each
	// event is tried at least once.
	MaxAttempts int
	MaxAge      time.Duration
	// Lease is how long a silent worker keeps a lane.
	Lease time.Duration
}

// DefaultPolicy retries an event for three days.
func DefaultPolicy() Policy {
	return Policy{
		PerTenant: 100, PendingRuns: 100_000,
		Limits:  Limits{Total: 128, PerTenant: 32, PerWebhook: 8},
		Feed:    FeedLimits{Frames: 1 << 16, PerTenant: 1 << 12},
		Timeout: 5 * time.Second, FirstRetry: 5 * time.Second, MaxRetry: time.Hour, MaxAttempts: 24, MaxAge: 72 * time.Hour,
		Lease: 15 * time.Second,
	}
}

// backoff returns the wait after a number of failures: the doubled wait, plus or minus a
// quarter, so that deliveries that failed together are not retried together. It is
// deterministic for a given event and failure count.
func (p Policy) backoff(id laneID, seq, failures int) time.Duration {
	d := p.MaxRetry
	if shift := failures - 1; shift < 32 && p.FirstRetry<<shift < d && p.FirstRetry<<shift > 0 {
		d = p.FirstRetry << shift
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Webhook + "/" + id.RunID + "/" + strconv.Itoa(seq) + "/" + strconv.Itoa(failures))) // never fails
	const parts = 1024
	share := float64(h.Sum64()%parts) / parts
	return d - d/4 + time.Duration(share*float64(d/2))
}

// counts counts deliveries since the process started.
type counts struct{ Delivered, Failed, Dead, Dropped atomic.Int64 }
