package limit

import "time"

// bucket is a token bucket. Unlike golang.org/x/time/rate it can be refunded and can go below zero,
// because a call's tokens are estimated before it and corrected after it.
type bucket struct {
	// minute are the tokens per minute of all dispatchers together. part is the fraction of them
	// that can be used at one instant.
	minute, part float64
	// perSecond and burst are this process's share of both.
	perSecond, burst float64
	level            float64
	last             time.Time
}

// newBucket returns an empty bucket; nil for no limit.
func newBucket(perMinute int, part float64, of int, now time.Time) *bucket {
	if perMinute <= 0 {
		return nil
	}
	b := &bucket{minute: float64(perMinute), part: part, last: now}
	b.setShare(now, of)
	return b
}

// setShare sets the share of one of several dispatchers. Tokens beyond a smaller share are lost. A
// larger share fills at its rate, so that changes of the group add no tokens.
func (b *bucket) setShare(now time.Time, of int) {
	if b == nil {
		return
	}
	b.fill(now)
	b.perSecond = b.minute / 60 / float64(of)
	b.burst = max(b.minute*b.part/float64(of), 1)
	b.level = min(b.level, b.burst)
}

func (b *bucket) fill(now time.Time) {
	if d := now.Sub(b.last).Seconds(); d > 0 {
		b.level = min(b.level+d*b.perSecond, b.burst)
		b.last = now
	}
}

// perMinute returns the rate of this process; 0 means no limit.
func (b *bucket) perMinute() float64 {
	if b == nil {
		return 0
	}
	return b.perSecond * 60
}

// fillUp fills the bucket immediately.
func (b *bucket) fillUp() {
	if b != nil {
		b.level = b.burst
	}
}

// wait returns the time until n tokens, at most a full bucket, are available.
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

// take uses n tokens, at most those of a minute. More than the bucket holds leave a debt.
func (b *bucket) take(now time.Time, n float64) {
	if b == nil {
		return
	}
	b.fill(now)
	b.level -= min(n, b.minute)
}

// settle replaces an estimate by the actual usage. The debt is at most the tokens of a minute.
func (b *bucket) settle(now time.Time, estimate, used float64) {
	if b == nil {
		return
	}
	b.fill(now)
	more := min(used, b.minute) - min(estimate, b.minute)
	b.level = max(min(b.level-more, b.burst), -b.minute)
}
