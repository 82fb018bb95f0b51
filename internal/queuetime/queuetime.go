// Package queuetime measures the mean time items spend in a queue, by Little's law: the mean number
// of items inside divided by the rate at which they leave. Unlike the mean of completed items it
// shows a queue while the queue still grows, and it needs a single clock.
package queuetime

import (
	"math"
	"sync"
	"time"
)

// Meter measures one queue. It is safe for concurrent use; nil disables it.
type Meter struct {
	window time.Duration

	mu        sync.Mutex // guards the fields below
	began     time.Time  // start of the window
	last      time.Time  // area covers the time up to here
	inside    int
	left      int
	area      time.Duration
	usualRate float64       // usual departures per second, over the last windows
	mean      time.Duration // result of the previous window
}

const (
	// decayUp and decayDown weight the usual rate when a window has more, or fewer, departures:
	// a higher rate is learned quickly, and one pause does not erase it.
	decayUp, decayDown = 0.5, 0.9
	// minDepartures is how many departures a window needs for a reliable rate.
	minDepartures = 8
)

// New returns a meter with the given window.
func New(window time.Duration) *Meter { return &Meter{window: window} }

// Enter counts an item that enters.
func (m *Meter) Enter(now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.inside++
}

// Leave counts an item that leaves.
func (m *Meter) Leave(now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.inside--
	m.left++
}

// Mean returns the mean time inside, measured over the last complete window.
func (m *Meter) Mean(now time.Time) time.Duration {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	return m.mean
}

// Inside returns the number of items inside.
func (m *Meter) Inside() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inside
}

// advance accounts for the time up to now. A window ends with the first call after its end.
func (m *Meter) advance(now time.Time) {
	if m.began.IsZero() {
		m.began, m.last = now, now
	}
	if d := now.Sub(m.last); d > 0 {
		m.area += time.Duration(m.inside) * d
		m.last = now
	}
	if now.Sub(m.began) >= m.window {
		m.mean = m.estimate(now.Sub(m.began))
		m.began, m.area, m.left = now, 0, 0
	}
}

// estimate returns the mean of a window that ends. If fewer items left than usual, for example
// while a disk syncs, it uses the usual rate until that decays. With almost no departures there is
// no rate, so the estimate may grow no faster than time passes.
func (m *Meter) estimate(took time.Duration) time.Duration {
	rate := float64(m.left) / took.Seconds()
	decay := decayDown
	if rate > m.usualRate {
		decay = decayUp
	}
	m.usualRate = rate + (m.usualRate-rate)*math.Pow(decay, took.Seconds()/m.window.Seconds())
	departures := max(float64(m.left), m.usualRate*min(took, m.window).Seconds())
	mean := time.Duration(float64(m.area) / max(departures, 1))
	if departures < minDepartures {
		mean = min(mean, m.mean+took)
	}
	return mean
}
