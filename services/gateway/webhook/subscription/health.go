package subscription

import (
	"slices"
	"time"
)

// The breaker of a subscription (OpenWOP host contract §10.5).
const (
	// OpenAfter is how many failures in a row open it.
	OpenAfter = 4
	// OpenFor is for how long; then one delivery is tried.
	OpenFor = time.Hour
	// FailAfter is how many failures within FailWindow end the subscription.
	FailAfter  = 100
	FailWindow = 7 * 24 * time.Hour
)

// openCallbacksFor is how long the breaker of callbacks stays open. A question waits for
// somebody, and may have a time, so it is told soon after its server is back.
const openCallbacksFor = time.Minute

// terms are those under which a breaker opens and ends.
type terms struct {
	openFor time.Duration
	// ends says that FailAfter failures end the subscription. Nobody has registered that
	// of callbacks, so nobody could register it anew: it does not end, each question does.
	ends bool
}

func (s *Subscription) terms() terms {
	if s.Callback {
		return terms{openFor: openCallbacksFor}
	}
	return terms{openFor: OpenFor, ends: true}
}

// probeLease is how long the one who tries a delivery while the breaker is half open
// keeps others from trying, too.
const probeLease = 30 * time.Second

// Health says how deliveries have gone.
type Health struct {
	// InRow counts the failures since the last success.
	InRow     int       `json:"inRow,omitempty"`
	OpenUntil time.Time `json:"openUntil,omitzero"`
	// ProbeUntil keeps the one delivery of a half-open breaker alone.
	ProbeUntil time.Time `json:"probeUntil,omitzero"`
	// Failures are the instants, in Unix seconds, of those within FailWindow.
	Failures []int64 `json:"failures,omitempty"`
	// FailedAt is when the subscription was given up; zero: it was not.
	FailedAt time.Time `json:"failedAt,omitzero"`
}

// Condition is what the breaker says.
type Condition string

// The conditions of a subscription.
const (
	Active   Condition = "active"
	Open     Condition = "open"      // nothing is sent until OpenUntil
	HalfOpen Condition = "half-open" // one delivery at a time is tried
	Failed   Condition = "failed"    // nothing is sent any more
)

// Condition is the breaker's at an instant.
func (h *Health) Condition(now time.Time) Condition {
	switch {
	case !h.FailedAt.IsZero():
		return Failed
	case h.InRow < OpenAfter:
		return Active
	case now.Before(h.OpenUntil):
		return Open
	default:
		return HalfOpen
	}
}

// Admits is when a delivery may be tried next; an instant that has passed: now.
func (h *Health) Admits(now time.Time) time.Time {
	switch h.Condition(now) {
	case Open:
		return h.OpenUntil
	case HalfOpen:
		return h.ProbeUntil
	case Active, Failed: // what is left of a failed one is put away at once
	}
	return time.Time{}
}

// Recent counts the failures within FailWindow.
func (h *Health) Recent(now time.Time) int {
	since, n := now.Add(-FailWindow).Unix(), 0
	for _, at := range h.Failures {
		if at > since {
			n++
		}
	}
	return n
}

// probe takes the one delivery of a half-open breaker.
func (h *Health) probe(now time.Time) { h.ProbeUntil = now.Add(probeLease) }

// succeed notes a delivery; false: nothing has changed.
func (h *Health) succeed() bool {
	if h.InRow == 0 {
		return false
	}
	h.InRow, h.OpenUntil, h.ProbeUntil = 0, time.Time{}, time.Time{}
	return true
}

// fail notes a failure.
func (h *Health) fail(now time.Time, t terms) {
	h.InRow++
	h.ProbeUntil = time.Time{}
	since := now.Add(-FailWindow).Unix()
	h.Failures = append(slices.DeleteFunc(slices.Clone(h.Failures), func(at int64) bool { return at <= since }), now.Unix())
	h.Failures = h.Failures[max(len(h.Failures)-FailAfter, 0):]
	if h.InRow >= OpenAfter {
		h.OpenUntil = now.Add(t.openFor)
	}
	if t.ends && len(h.Failures) >= FailAfter && h.FailedAt.IsZero() {
		h.FailedAt = now
	}
}
