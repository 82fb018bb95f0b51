package admission

import (
	"math"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/internal/sojourn"
)

const (
	// interval is how often the limiter looks at how long runs take to begin, and how long
	// it measures that.
	interval = 200 * time.Millisecond
	// leastRate is what it lets through at least, in a second: without a start now and then nobody would
	// notice that the host has room again.
	leastRate = 10.0
	// enoughTold bounds how many of the dispatchers' reports are kept of one interval.
	enoughTold = 256
	// keptTold is how long the last ones hold where none came since.
	keptTold = time.Second
)

// The control law is a proportional-integral one, on the logarithm of the rate: it sees the delay in
// parts of its target, and so it is the same for a host of ten runs a second and for one of
// ten thousand, and for one gateway and for several, each of which takes the same part of its
// own. With a target of half a second the queue comes to it within some two seconds, and
// without swinging as long as the delay is known within some 0.4 s.
const (
	proportional = 0.7
	integral     = 0.3 // a second
	// recovery takes the place of integral while runs begin in less than half the target: a host that
	// was hindered for a moment is soon used again.
	recovery = 3.0 // a second
	// servedOver is over how many seconds it is measured how many starts dispatchers answer, and
	// ofServed what part of that is taken at least: a host that stood still for a moment is not left without work.
	servedOver = 3.0
	ofServed   = 0.4
	// worst bounds what of the delay counts, in targets.
	worst = 6.0
)

// StartLimiter decides how many starts the host takes. As long as runs begin in time that is all; from then
// on it holds the delay at its target by taking fewer. The delay is measured: how long the dispatchers take to answer
// a start, and how long runs take there from being handed out to their first step. What stands in
// the queue because all executors are busy with somebody else is not in it. Of what it takes each
// tenant may have the same part. It is safe for concurrent use.
type StartLimiter struct {
	target time.Duration
	clock  func() time.Time
	starts *sojourn.Meter

	mu     sync.Mutex // guards what follows
	looked time.Time  // when the interval began
	rate   float64    // of starts a second; +Inf: all
	tokens float64
	filled time.Time // up to here the tokens are counted
	shares shares    // of the rate, by tenants
	// asked, taken and answered are those of this interval.
	asked, taken, answered int
	served                 float64         // answered in a second
	told                   []time.Duration // what dispatchers told in it
	begins                 time.Duration   // what they told last
	toldAt                 time.Time
	excess                 float64 // of the delay over the target at the last look, in targets
}

// NewStartLimiter makes one that lets runs take as long as target from their request to their
// first step; 0: it takes all.
func NewStartLimiter(target time.Duration, clock func() time.Time) *StartLimiter {
	return &StartLimiter{target: target, clock: clock, starts: sojourn.New(interval), rate: math.Inf(1), looked: clock(), excess: -1, shares: shares{}}
}

// Take asks for one start of a tenant; empty: of who is unknown, and gets what tenants leave.
func (l *StartLimiter) Take(tenant string) bool {
	if l.target <= 0 {
		return true
	}
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(now)
	l.asked++
	if !math.IsInf(l.rate, 1) {
		l.tokens = min(l.tokens+l.rate*now.Sub(l.filled).Seconds(), max(1, l.rate*interval.Seconds()))
		l.filled = now
		own := l.tokens > -shareDebt*l.rate && l.shares.take(tenant, now, l.rate)
		if !own && l.tokens < 1 { // nor has anybody left something
			return false
		}
		l.tokens--
	}
	l.taken++
	return true
}

// Began tells that a dispatcher is asked to start a run, ended that it has answered: how long runs take there to
// begin, or that it took none.
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
		l.toldAt = now
		if len(l.told) < enoughTold {
			l.told = append(l.told, begins)
		}
	}
}

// Rate is how many starts a second are taken at the moment; +Inf: all.
func (l *StartLimiter) Rate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate
}

// Delay is how long runs take from their request to their first step, as far as it is known.
func (l *StartLimiter) Delay() time.Duration {
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay(now)
}

func (l *StartLimiter) delay(now time.Time) time.Duration {
	d := l.starts.Mean(now)
	if now.Sub(l.toldAt) <= keptTold {
		d += l.begins
	}
	return d
}

// look ends an interval that is over, and sets the rate of the next.
func (l *StartLimiter) look(now time.Time) {
	took := now.Sub(l.looked)
	if took < interval {
		return
	}
	if len(l.told) > 0 {
		// The median: neither one dispatcher that is slow nor one that has nothing to do, because
		// it gets nothing, speaks for all.
		slices.Sort(l.told)
		l.begins = l.told[(len(l.told)-1)/2]
	}
	// Half of it is that of the look before: one that is slow alone is not followed at once.
	excess := (min(l.delay(now).Seconds()/l.target.Seconds(), worst) - 1 + l.excess) / 2
	seconds := took.Seconds()
	l.served += (float64(l.answered)/seconds - l.served) * (1 - math.Exp(-seconds/servedOver))
	l.adjust(excess, seconds)
	l.shares.forget(now)
	l.looked, l.asked, l.taken, l.answered, l.told, l.excess = now, 0, 0, 0, l.told[:0], excess
}

// adjust is the control law.
func (l *StartLimiter) adjust(excess, seconds float64) {
	asked := float64(l.asked) / seconds
	open := math.IsInf(l.rate, 1)
	switch {
	case open && excess <= 0:
		return
	case open:
		l.rate, l.tokens, l.filled = min(float64(l.taken)/seconds, 2*l.served), 0, l.looked
		l.excess = 0 // from the target on
	case excess < -0.5 && l.rate > 2*asked:
		l.rate = math.Inf(1)
		return
	}
	gain := integral
	if excess < -0.5 {
		gain = recovery
	}
	change := -proportional*(excess-l.excess) - gain*min(seconds, 1)*excess
	l.rate *= math.Exp(max(min(change, 1), -2))
	// What nobody asks for must not be let through at once later.
	l.rate = max(min(l.rate, 2*asked+leastRate), ofServed*l.served, leastRate)
}
