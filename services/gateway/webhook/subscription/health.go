package subscription

import (
	"slices"
	"time"
)

// The breaker of a subscription (OpenWOP host contract §10.5).
const (
	// OpenAfter is the number of consecutive failures that open the breaker.
	OpenAfter = 4
	// OpenFor is how long it stays open. Then one delivery is tried.
	OpenFor = time.Hour
	// FailAfter is the number of failures within FailWindow that end the subscription.
	FailAfter  = 100
	FailWindow = 7 * 24 * time.Hour
)

// openCallbacksFor is how long the breaker of a callback stays open. It is short: a question
// waits for an answer and may expire, so it must be delivered soon after the server
// recovers.
const openCallbacksFor = time.Minute

// terms are the thresholds of a breaker.
type terms struct {
	openFor time.Duration
	// ends allows FailAfter failures to end the subscription. Callbacks do not end, because
	// no client registered them and none could register them again; only their questions
	// end.
	ends bool
}

func (s *Subscription) terms() terms {
	if s.Callback {
		return terms{openFor: openCallbacksFor}
	}
	return terms{openFor: OpenFor, ends: true}
}

// probeLease is how long a worker that probes a half-open breaker keeps other workers from
// probing.
const probeLease = 30 * time.Second

// Health is the delivery history that the breaker uses.
type Health struct {
	// InRow is the number of failures since the last success.
	InRow     int       `json:"inRow,omitempty"`
	OpenUntil time.Time `json:"openUntil,omitzero"`
	// ProbeUntil is when the lease of the current probe ends.
	ProbeUntil time.Time `json:"probeUntil,omitzero"`
	// Failures are the times of the failures within FailWindow, in Unix seconds.
	Failures []int64 `json:"failures,omitempty"`
	// FailedAt is when the subscription failed permanently; zero if it did not.
	FailedAt time.Time `json:"failedAt,omitzero"`
}

// Condition is the state of a breaker.
type Condition string

// The conditions of a subscription.
const (
	Active   Condition = "active"
	Open     Condition = "open"      // no deliveries until OpenUntil
	HalfOpen Condition = "half-open" // one delivery at a time
	Failed   Condition = "failed"    // no deliveries
)

// Condition returns the state of the breaker at a time.
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

// Admits returns when the next delivery may be tried. A time in the past means now.
func (h *Health) Admits(now time.Time) time.Time {
	switch h.Condition(now) {
	case Open:
		return h.OpenUntil
	case HalfOpen:
		return h.ProbeUntil
	case Active, Failed: // lanes of a failed one are cleared immediately
	}
	return time.Time{}
}

// Recent returns the number of failures within FailWindow.
func (h *Health) Recent(now time.Time) int {
	since, n := now.Add(-FailWindow).Unix(), 0
	for _, at := range h.Failures {
		if at > since {
			n++
		}
	}
	return n
}

// probe claims the single delivery of a half-open breaker.
func (h *Health) probe(now time.Time) { h.ProbeUntil = now.Add(probeLease) }

// succeed records a delivery. It returns false if nothing changed.
func (h *Health) succeed() bool {
	if h.InRow == 0 {
		return false
	}
	h.InRow, h.OpenUntil, h.ProbeUntil = 0, time.Time{}, time.Time{}
	return true
}

// fail records a failure.
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
