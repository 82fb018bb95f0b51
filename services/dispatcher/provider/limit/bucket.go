package limit

import "time"

// bucket is a token bucket. Unlike golang.org/x/time/rate it takes tokens back, and can go
// below zero: the tokens of a call are estimated before it and corrected after it.
type bucket struct {
	perSecond, burst, level float64
	last                    time.Time
}

// newBucket is full; nil for a rate without a limit.
func newBucket(perMinute int, burst float64, now time.Time) *bucket {
	if perMinute <= 0 {
		return nil
	}
	burst = max(burst, 1)
	return &bucket{perSecond: float64(perMinute) / 60, burst: burst, level: burst, last: now}
}

func (b *bucket) fill(now time.Time) {
	if d := now.Sub(b.last).Seconds(); d > 0 {
		b.level = min(b.level+d*b.perSecond, b.burst)
		b.last = now
	}
}

// wait is the time until n tokens are there, or as many as the bucket holds.
func (b *bucket) wait(now time.Time, n float64) time.Duration {
	if b == nil {
		return 0
	}
	b.fill(now)
	short := min(n, b.burst) - b.level
	if short <= 0 {
		return 0
	}
	// Rounded up: a timer that fires early would find the bucket short again.
	return time.Duration(short/b.perSecond*float64(time.Second)) + time.Millisecond
}

// take takes n tokens, at most as many as the bucket holds; a negative n gives them back.
func (b *bucket) take(now time.Time, n float64) {
	if b == nil {
		return
	}
	b.fill(now)
	b.level = min(b.level-min(n, b.burst), b.burst)
}

// settle replaces an estimate that was taken by what was used. A call that used more than
// the bucket holds leaves a debt of at most that.
func (b *bucket) settle(now time.Time, estimate, used float64) {
	if b == nil {
		return
	}
	b.fill(now)
	more := min(used, b.burst) - min(estimate, b.burst)
	b.level = max(min(b.level-more, b.burst), -b.burst)
}
