package sim

import "time"

// Faults are how likely each fault is at a call that can have it.
type Faults struct {
	Fail, Lose, Slow, Crash, Freeze, Expire, Linger, Stale float64
	// Jump sets the clock of the process that calls, up to Far from the right time. Clocks are
	// right again when there are no more faults.
	Jump float64
	Far  time.Duration
	// Drain has the process that calls told to end; another one follows it.
	Drain float64
	// For is how long there are any, Most how many.
	For  time.Duration
	Most int
}

// Fate is what becomes of a call.
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
	return [...]string{"", " !failed", " !answer lost", " !process hangs", " !process dies before", " !process dies after"}[f]
}

// faulty reports that faults still happen.
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

// fateOf throws the dice for one call.
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
	if gone { // it is on its way, or has got lost there
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

// hit throws a die and counts.
func (w *World) hit(p float64) bool {
	if p <= 0 || w.chance.Float64() >= p {
		return false
	}
	w.fates++
	return true
}
