package sim

import "time"

// Blow sets the fate of one call of a simulation, by the call's number.
type Blow struct {
	Step int
	Fate Fate
}

// Call is a served call.
type Call struct {
	Step int
	// At is its boundary, From the calling process.
	At, From, Detail string
	// Fates are the fates that the call can have.
	Fates []Fate
}

// blow returns the fate set for this call.
func (w *World) blow() (Fate, bool) {
	for _, b := range w.scenario.Blows {
		if b.Step == w.steps {
			w.fates++
			return b.Fate, true
		}
	}
	return Served, false
}

// listed records a call for the verdict.
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

// rise is how long the next process of a slot takes to start. In a story the queue detects a lost
// process immediately. A longer lease would only add time, and a gate or a run that times out would
// make it a different story.
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
