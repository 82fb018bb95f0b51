// Package queuetime measures how long things stay in a place, by Little's law: the mean
// number that were there, over the rate at which they leave. Unlike the mean of those that
// have left it tells of a queue while that grows, and it needs one clock only.
package queuetime

import (
	"math"
	"sync"
	"time"
)

// Meter measures one place. It is safe for concurrent use; nil measures nothing.
type Meter struct {
	window time.Duration

	mu     sync.Mutex // guards what follows
	began  time.Time  // of the window
	last   time.Time  // up to here is what was there in area
	inside int
	left   int
	area   time.Duration
	usual  float64       // how many leave in a second, over the last windows
	mean   time.Duration // of the window before
}

const (
	// gains and keeps are what part of the usual rate stays over a window in which more leave, and
	// over one in which fewer do: it is learnt soon, and a pause does not take it away at once.
	gains, keeps = 0.5, 0.9
	// few is how many have to leave in a window for a rate that says something.
	few = 8
)

// New makes a meter that tells of a window at a time.
func New(window time.Duration) *Meter { return &Meter{window: window} }

// Enter counts one that comes.
func (m *Meter) Enter(now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(now)
	m.inside++
}

// Leave counts one that goes.
func (m *Meter) Leave(now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(now)
	m.inside--
	m.left++
}

// Mean is how long one stays, as it was in the last whole window.
func (m *Meter) Mean(now time.Time) time.Duration {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(now)
	return m.mean
}

// Inside is how many are there.
func (m *Meter) Inside() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inside
}

// pass takes the time up to now into account. A window ends with the first thing that
// happens after it.
func (m *Meter) pass(now time.Time) {
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

// estimate tells of a window that ends. Where fewer have left than usually do, as while a disk syncs,
// that is taken for a moment's pause, and the usual rate counts until it is forgotten. And where hardly
// anybody leaves at all there is no rate: what is told grows as time passes, then, and no faster.
func (m *Meter) estimate(took time.Duration) time.Duration {
	rate := float64(m.left) / took.Seconds()
	stays := keeps
	if rate > m.usual {
		stays = gains
	}
	m.usual = rate + (m.usual-rate)*math.Pow(stays, took.Seconds()/m.window.Seconds())
	leaves := max(float64(m.left), m.usual*min(took, m.window).Seconds())
	mean := time.Duration(float64(m.area) / max(leaves, 1))
	if leaves < few {
		mean = min(mean, m.mean+took)
	}
	return mean
}
