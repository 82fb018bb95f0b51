// Package retry has the waits between the attempts of a call that may fail for a while.
package retry

import (
	"context"
	"iter"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// Policy is how often, and how long, to retry.
type Policy struct {
	// Base is the first wait. Each further one is twice as long, up to Max; zero Max repeats Base.
	Base, Max time.Duration
	// Attempts limits the attempts; zero means no limit.
	Attempts int
	// Total limits the waits together: none starts once they add up to it. Zero means no limit.
	Total time.Duration
}

// Every retries without end, with equal waits.
func Every(wait time.Duration) Policy { return Policy{Base: wait} }

// Start returns the waits of one call.
func (p Policy) Start() *Waits { return &Waits{policy: p} }

// Tries yields once for each attempt, with a wait before each but the first. It ends with ctx or the
// last attempt.
func (p Policy) Tries(ctx context.Context) iter.Seq[*Waits] {
	return func(yield func(*Waits) bool) {
		for w := p.Start(); yield(w) && w.Wait(ctx); {
		}
	}
}

// Waits counts the waits of one call. One goroutine uses it.
type Waits struct {
	policy Policy
	count  int // since the last Reset
	total  time.Duration
}

// Next returns the length of the next wait.
func (w *Waits) Next() time.Duration {
	p := w.policy
	if p.Max == 0 {
		return p.Base
	}
	d := p.Base
	for range w.count {
		if d = min(2*d, p.Max); d == p.Max {
			break
		}
	}
	return d
}

// Wait waits before the next attempt. It returns false if ctx ended, or no attempt is left.
func (w *Waits) Wait(ctx context.Context) bool {
	p, d := w.policy, w.Next()
	if p.Attempts > 0 && w.count+1 >= p.Attempts || p.Total > 0 && w.total >= p.Total {
		return false
	}
	w.count++
	w.total += d
	return lifecycle.Wait(ctx, d)
}

// Reset makes the next wait the first again, after a success.
func (w *Waits) Reset() { w.count, w.total = 0, 0 }
