package sim

import "time"

// Faults are the probabilities of each fault at a call that can have it.
type Faults struct {
	Fail, Lose, Slow, Crash, Freeze, Expire, Linger, Stale float64
	// Jump sets the clock of the calling process, up to Far from the true time. After the last
	// fault, clocks are right again.
	Jump float64
	Far  time.Duration
	// Drain shuts the calling process down; another one takes its slot.
	Drain float64
	// For is how long faults happen, Most how many.
	For  time.Duration
	Most int
}

// Fate is the outcome of a call.
type Fate int

// The fates.
const (
	Served Fate = iota
	Fail
	Lose
	Freeze
	CrashBefore
	CrashAfter
)

func (f Fate) suffix() string {
	return [...]string{"", " !failed", " !answer lost", " !process hangs", " !process killed before", " !process dies after"}[f]
}

// faulty reports whether faults still happen.
func (w *World) faulty() bool {
	if !w.calm.IsZero() {
		return false
	}
	if time.Since(w.began) < w.scenario.Faults.For && w.fates < w.scenario.Faults.Most {
		return true
	}
	w.calm = time.Now()
	for _, p := range w.procs {
		p.ahead.Store(0)
	}
	return false
}

// jump sets a process's clock.
func (w *World) jump(p *process) {
	far := int64(w.scenario.Faults.Far)
	p.ahead.Store(w.chance.Int64N(2*far+1) - far)
}

// fateOf draws the fate of one call.
func (w *World) fateOf(c *call) Fate {
	if f, meant := w.blow(); meant {
		return f
	}
	f, t := w.scenario.Faults, boundaries[c.at]
	w.mu.Lock()
	gone := c.gone || c.from.dead
	w.mu.Unlock()
	if !w.faulty() {
		if gone {
			return Fail
		}
		return Served
	}
	if gone { // the caller is gone: the call is on its way, or is lost
		if w.hit(f.Linger) {
			return Served
		}
		return Fail
	}
	switch {
	case w.hit(f.Jump):
		w.jump(c.from)
	case w.hit(f.Expire):
		w.queue.expire()
	case w.hit(f.Drain):
		w.drain(c.from)
	case w.hit(f.Crash):
		if w.chance.IntN(2) == 0 {
			return CrashBefore
		}
		return CrashAfter
	case w.hit(f.Freeze):
		return Freeze
	case t.fails && w.hit(f.Fail):
		return Fail
	case t.loses && w.hit(f.Lose):
		return Lose
	}
	return Served
}

// hit draws with probability p and counts the hit.
func (w *World) hit(p float64) bool {
	if p <= 0 || w.chance.Float64() >= p {
		return false
	}
	w.fates++
	return true
}
