package sim

import "time"

// Blow is what becomes of one call of a simulation, by its number.
type Blow struct {
	Step int
	Fate Fate
}

// Call is a call as it was served.
type Call struct {
	Step int
	// At is its boundary, From the process that made it.
	At, From, Detail string
	// Fates are those that it can have.
	Fates []Fate
}

// blow is the fate that was meant for this call.
func (w *World) blow() (Fate, bool) {
	for _, b := range w.scenario.Blows {
		if b.Step == w.steps {
			w.fates++
			return b.Fate, true
		}
	}
	return Served, false
}

// listed keeps a call for the verdict.
func (w *World) listed(c *call) {
	w.mu.Lock()
	gone := c.gone || c.from.dead
	w.mu.Unlock()
	if w.scenario.Story == nil || c.at == atSign || gone {
		return
	}
	fates := []Fate{CrashBefore, CrashAfter}
	if boundaries[c.at].fails {
		fates = append(fates, Fail)
	}
	if boundaries[c.at].fails && c.perform != nil {
		fates = append(fates, Lose)
	}
	w.calls = append(w.calls, Call{Step: w.steps, At: string(c.at), From: c.from.name, Detail: c.detail, Fates: fates})
}

// rise is how long the next process of a slot takes to come up. In a story the queue notices
// at once that somebody is lost: how long a lease is changes nothing but time, and a gate
// or a run whose time is up meanwhile is another story.
func (w *World) rise(lost *process) time.Duration {
	if w.scenario.Story == nil {
		return time.Duration(w.chance.Int64N(int64(2 * leaseTime)))
	}
	for _, it := range w.queue.items {
		if it.by == lost {
			it.free = time.Now()
		}
	}
	return time.Millisecond
}
