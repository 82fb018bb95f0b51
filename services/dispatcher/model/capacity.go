package model

import "time"

// Pauses before a model without capacity is called again.
const (
	// minPause keeps full jitter from calling again immediately.
	minPause = 100 * time.Millisecond
	// firstWindow is the longest own pause at first; it doubles up to maxWindow.
	firstWindow = time.Second
	maxWindow   = 2 * time.Minute
	// maxAsked is the longest wait accepted from a vendor. A longer one is cut to it.
	maxAsked = 15 * time.Minute
)

// retryPause returns how long to wait for a model without capacity: the vendor's wait plus a random
// part of a window that grows with each wait (full jitter). Runs refused together therefore do not
// return together. The caller records the result.
func (e *emission) retryPause(asked time.Duration) time.Duration {
	window := maxWindow
	if e.task.Waits < 8 {
		window = min(firstWindow<<max(e.task.Waits, 0), maxWindow)
	}
	jitter := e.deps.Jitter(window)
	return max(min(asked, maxAsked)+jitter, minPause)
}
