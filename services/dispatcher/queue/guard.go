package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
)

// GuardConfig limits the starts of runs.
type GuardConfig struct {
	// MaxStarts limits the concurrent starts; 0 means no limit.
	MaxStarts int64
	// MaxWait limits the expected wait of a new run; 0 means no limit.
	MaxWait time.Duration
}

const (
	// sampleInterval is how often the backlog is read. depthTimeout limits one read.
	sampleInterval = time.Second
	depthTimeout   = 5 * time.Second
	// rateWindow is the period over which the rate of the backlog is measured.
	rateWindow = 10 * time.Second
	// retryFull is the retry hint for a long backlog, retryBusy for too many concurrent starts.
	retryFull = 3 * time.Second
	retryBusy = time.Second
)

// Guard admits starts of runs. It is safe for concurrent use.
type Guard struct {
	cfg             GuardConfig
	clock           func() time.Time
	starts, refused atomic.Int64

	mu            sync.Mutex // guards what follows
	samples       []sample   // oldest first
	lastHandedOut time.Time  // when a run was last handed out
}

// sample is the depth of the backlog at an instant.
type sample struct {
	at    time.Time
	depth runlog.Depth
}

// NewGuard returns a guard.
func NewGuard(cfg GuardConfig, clock func() time.Time) *Guard { return &Guard{cfg: cfg, clock: clock} }

// Run reads the backlog until ctx ends. While that fails, the last sample is used.
func (g *Guard) Run(ctx context.Context, backlog runlog.Queue) error {
	for lifecycle.Wait(ctx, sampleInterval) {
		asked, cancel := context.WithTimeout(ctx, depthTimeout)
		d, err := backlog.Depth(asked)
		cancel()
		if err == nil {
			g.Observe(d)
		}
	}
	return ctx.Err()
}

// Observe adds a sample of the backlog.
func (g *Guard) Observe(d runlog.Depth) {
	now := g.clock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.samples); n == 0 || g.samples[n-1].depth.HandedOut != d.HandedOut || d.Waiting == 0 {
		g.lastHandedOut = now
	}
	g.samples = append(g.samples, sample{now, d})
	for len(g.samples) > 2 && now.Sub(g.samples[0].at) > rateWindow {
		g.samples = g.samples[1:]
	}
}

// ExpectedWait is the expected wait of a run that starts now: the number of runs in front of it,
// divided by the rate at which runs are handed out. Without any, it is the time since the last one.
// Runs that left the backlog and wait for a slot count for their own tenant only: parked is the
// number of the tenant's.
func (g *Guard) ExpectedWait(parked int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.samples) == 0 {
		return 0
	}
	first, last := g.samples[0], g.samples[len(g.samples)-1]
	waiting := max(last.depth.Waiting-last.depth.Parked, 0) + parked
	if waiting == 0 {
		return 0
	}
	stood := g.clock().Sub(g.lastHandedOut)
	handed := last.depth.HandedOut - first.depth.HandedOut
	if handed == 0 {
		return stood
	}
	each := last.at.Sub(first.at).Seconds() / float64(handed)
	return max(stood, time.Duration(float64(waiting)*each*float64(time.Second)))
}

// longestWait is the wait of a run whose tenant has all parked runs.
func (g *Guard) longestWait() time.Duration {
	g.mu.Lock()
	parked := 0
	if n := len(g.samples); n > 0 {
		parked = g.samples[n-1].depth.Parked
	}
	g.mu.Unlock()
	return g.ExpectedWait(parked)
}

// IsUndelivered reports whether a frame of the queue was not delivered before the last sample.
func (g *Guard) IsUndelivered(pos uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.samples) == 0 {
		return true
	}
	return pos > g.samples[len(g.samples)-1].depth.Delivered
}

// Enter admits a start; leave ends it. parked is the number of its tenant's runs that wait for a
// slot.
func (g *Guard) Enter(parked int) (leave func(), err error) {
	if n := g.starts.Add(1); g.cfg.MaxStarts > 0 && n > g.cfg.MaxStarts {
		return nil, g.refuse("the host is at its capacity; nothing was done, try again", retryBusy)
	}
	if wait := g.ExpectedWait(parked); g.cfg.MaxWait > 0 && wait > g.cfg.MaxWait {
		return nil, g.refuse("too many runs wait for a free place; nothing was done, try again", retryFull)
	}
	return func() { g.starts.Add(-1) }, nil
}

func (g *Guard) refuse(why string, after time.Duration) error {
	g.starts.Add(-1)
	g.refused.Add(1)
	return fault.New(fault.ServiceUnavailable, "%s", why).After(after)
}

// Collectors are the guard's metrics, read from its state.
func (g *Guard) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "waybill",
			Subsystem: "dispatcher",
			Name:      "refused_starts_total",
			Help:      "Starts of runs rejected with a retry hint.",
		}, func() float64 { return float64(g.refused.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "waybill",
			Subsystem: "dispatcher",
			Name:      "queue_wait_seconds",
			Help:      "Expected wait of a new run for a slot, at the current rate.",
		}, func() float64 { return g.longestWait().Seconds() }),
	}
}
