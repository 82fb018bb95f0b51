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

// GuardConfig bounds what is taken.
type GuardConfig struct {
	// MaxStarts bounds the starts at a time; 0: no bound.
	MaxStarts int64
	// MaxWait is how long a run may wait until it is handed out; 0: no bound.
	MaxWait time.Duration
}

const (
	// sampleInterval is how often the backlog is looked at, and patience how long it may take to answer.
	sampleInterval = time.Second
	depthTimeout   = 5 * time.Second
	// rateWindow is over how long it is measured how fast the backlog is worked off.
	rateWindow = 10 * time.Second
	// retryFull is the hint to a caller whose run would wait for a place: that takes its time.
	retryFull = 3 * time.Second
	retryBusy = time.Second
)

// Guard lets starts in. It is safe for concurrent use.
type Guard struct {
	cfg             GuardConfig
	clock           func() time.Time
	starts, refused atomic.Int64

	mu            sync.Mutex // guards what follows
	samples       []sample   // the oldest first
	lastHandedOut time.Time  // when the backlog was last seen to have handed something out
}

// sample is what was seen of the backlog at an instant.
type sample struct {
	at    time.Time
	depth runlog.Depth
}

// NewGuard makes a guard.
func NewGuard(cfg GuardConfig, clock func() time.Time) *Guard { return &Guard{cfg: cfg, clock: clock} }

// Run looks at the backlog until ctx ends. While it does not answer, what was seen last holds.
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

// Observe tells what is in the backlog.
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

// ExpectedWait is how long a run that is started now will wait until it is handed out, if all goes on as it
// did: those that wait in front of it, over the rate at which they are handed out. Where none is, it is
// how long that has been so. Runs that left the backlog and wait for a slot count for their own tenant
// only: parked is how many of the tenant's do.
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

// longestWait is the wait of a run whose tenant has all that is parked.
func (g *Guard) longestWait() time.Duration {
	g.mu.Lock()
	parked := 0
	if n := len(g.samples); n > 0 {
		parked = g.samples[n-1].depth.Parked
	}
	g.mu.Unlock()
	return g.ExpectedWait(parked)
}

// Backlog reports that runs wait to be handed out, as last seen.
func (g *Guard) Backlog() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.samples) == 0 {
		return false
	}
	d := g.samples[len(g.samples)-1].depth
	return d.Waiting+d.Limited > 0
}

// Enter lets a start in; leave gives its place back. parked is how many runs of its tenant wait for
// a slot.
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

// Collectors are the guard's metrics. They read what is kept anyway.
func (g *Guard) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "waybill", Subsystem: "dispatcher", Name: "refused_starts_total", Help: "Starts of runs that were told to come again before anything was done for them.",
		}, func() float64 { return float64(g.refused.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "waybill", Subsystem: "dispatcher", Name: "queue_wait_seconds", Help: "How long a run that is started now will wait for a free place, if all goes on as it did.",
		}, func() float64 { return g.longestWait().Seconds() }),
	}
}
