package admission

import (
	"math"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/internal/queuetime"
)

const (
	// interval is how often the start delay is measured, and over which time.
	interval = 200 * time.Millisecond
	// minRate is always admitted, per second; otherwise recovery is never detected.
	minRate = 10.0
	// maxReports limits how many of the dispatchers' reports of one interval are kept.
	maxReports = 256
	// reportTTL is how long the last report is used if no new one arrives.
	reportTTL = time.Second
)

// The limiter is a proportional-integral controller on the logarithm of the rate. Its input is
// the delay relative to the target, so it works alike for ten runs a second and for ten
// thousand, and for one gateway and for several, each of which controls its own share. With a
// target of half a second the delay settles within about two seconds. It does not oscillate
// if the measured delay lags by at most about 0.4 s.
const (
	proportional = 0.7
	integral     = 0.3 // a second
	// recovery replaces integral while the delay is below half the target, so that a host
	// recovers quickly from a short stall.
	recovery = 3.0 // a second
	// servedSeconds is the averaging time of the rate of answered starts. At least
	// minServedShare of that rate is admitted, so that a stalled host does not run idle.
	servedSeconds  = 3.0
	minServedShare = 0.4
	// maxDelay limits the delay that the controller uses, in multiples of the target.
	maxDelay = 6.0
)

// StartLimiter limits the rate of starts so that runs begin in time. While the start delay is
// below its target, it admits all starts; above, it holds the delay at the target. The delay
// has two parts: how long dispatchers take to answer a start, and how long a run takes there
// from its delivery to its first step. Time in the queue while all executors are busy is not
// included. Each tenant gets an equal share of the rate. It is safe for concurrent use.
type StartLimiter struct {
	target time.Duration
	clock  func() time.Time
	starts *queuetime.Meter

	mu            sync.Mutex // guards all below
	intervalStart time.Time  // start of the interval
	rate          float64    // admitted starts per second; +Inf: no limit
	tokens        float64
	filled        time.Time // tokens are counted up to this time
	shares        shares    // of the rate, by tenant
	// Counts of this interval: requested, admitted and answered starts.
	requested, admitted, answered int
	served                        float64         // answered starts per second, averaged
	reports                       []time.Duration // reports of dispatchers in this interval
	begins                        time.Duration   // median of the last reports
	reportedAt                    time.Time
	excess                        float64 // delay above the target at the last update, in multiples of the target
}

// NewStartLimiter makes a limiter with a target delay from a run's request to its first step;
// 0 disables the limit.
func NewStartLimiter(target time.Duration, clock func() time.Time) *StartLimiter {
	return &StartLimiter{
		target:        target,
		clock:         clock,
		starts:        queuetime.New(interval),
		rate:          math.Inf(1),
		intervalStart: clock(),
		excess:        -1,
		shares:        shares{},
	}
}

// Take reports whether a start of a tenant is admitted. The empty tenant stands for unknown
// callers, which get the rate that tenants leave unused.
func (l *StartLimiter) Take(tenant string) bool {
	if l.target <= 0 {
		return true
	}
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.update(now)
	l.requested++
	if !math.IsInf(l.rate, 1) {
		l.tokens = min(l.tokens+l.rate*now.Sub(l.filled).Seconds(), max(1, l.rate*interval.Seconds()))
		l.filled = now
		own := l.tokens > -shareDebt*l.rate && l.shares.take(tenant, now, l.rate)
		if !own && l.tokens < 1 { // no tenant left any rate unused
			return false
		}
		l.tokens--
	}
	l.admitted++
	return true
}

// Began records that a start was sent to a dispatcher. ended records the answer: the delay
// until runs begin there, or that the dispatcher rejected the start.
func (l *StartLimiter) Began() (ended func(begins time.Duration, ok bool)) {
	l.starts.Enter(l.clock())
	return func(begins time.Duration, ok bool) {
		now := l.clock()
		l.starts.Leave(now)
		if !ok {
			begins = 2 * l.target
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answered++
		l.reportedAt = now
		if len(l.reports) < maxReports {
			l.reports = append(l.reports, begins)
		}
	}
}

// Rate returns the admitted starts per second; +Inf means no limit.
func (l *StartLimiter) Rate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate
}

// Delay returns the measured delay from a run's request to its first step.
func (l *StartLimiter) Delay() time.Duration {
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay(now)
}

func (l *StartLimiter) delay(now time.Time) time.Duration {
	d := l.starts.Mean(now)
	if now.Sub(l.reportedAt) <= reportTTL {
		d += l.begins
	}
	return d
}

// update ends an interval that is over, and sets the rate of the next.
func (l *StartLimiter) update(now time.Time) {
	took := now.Sub(l.intervalStart)
	if took < interval {
		return
	}
	if len(l.reports) > 0 {
		// The median, so that one slow or idle dispatcher does not decide for all.
		slices.Sort(l.reports)
		l.begins = l.reports[(len(l.reports)-1)/2]
	}
	// Half of it is the previous value, so that a single slow interval counts half.
	excess := (min(l.delay(now).Seconds()/l.target.Seconds(), maxDelay) - 1 + l.excess) / 2
	seconds := took.Seconds()
	l.served += (float64(l.answered)/seconds - l.served) * (1 - math.Exp(-seconds/servedSeconds))
	l.adjust(excess, seconds)
	l.shares.forget(now)
	l.intervalStart, l.requested, l.admitted, l.answered, l.reports, l.excess = now, 0, 0, 0, l.reports[:0], excess
}

// adjust applies the controller to the rate.
func (l *StartLimiter) adjust(excess, seconds float64) {
	requestRate := float64(l.requested) / seconds
	open := math.IsInf(l.rate, 1)
	switch {
	case open && excess <= 0:
		return
	case open:
		l.rate, l.tokens, l.filled = min(float64(l.admitted)/seconds, 2*l.served), 0, l.intervalStart
		l.excess = 0 // starting from the target
	case excess < -0.5 && l.rate > 2*requestRate:
		l.rate = math.Inf(1)
		return
	}
	gain := integral
	if excess < -0.5 {
		gain = recovery
	}
	change := -proportional*(excess-l.excess) - gain*min(seconds, 1)*excess
	l.rate *= math.Exp(max(min(change, 1), -2))
	// Unused rate must not accumulate for a later burst.
	l.rate = max(min(l.rate, 2*requestRate+minRate), minServedShare*l.served, minRate)
}
