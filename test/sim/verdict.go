package sim

import (
	"fmt"
	"hash/fnv"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// Options change how a scenario is run.
type Options struct {
	// Log creates the run log; nil uses a correct one.
	Log func() runlog.Log
	// Traced records a line about every call.
	Traced bool
	// Together lets dispatchers put the results of several effects into one frame. The grouping
	// does not depend on the seed, so the simulation is not reproducible.
	Together bool
	// Prefetch is the number of runs a dispatcher fetches regardless of free slots; 0 fetches as
	// many as it wants. AckWait is the queue's; 0 means runlog.AckWait. Unleased lets a dispatcher
	// execute every delivered run. Together they are a design that executes runs twice; see
	// TestSim_FindsDispatchersWithoutLeases.
	Prefetch int
	AckWait  time.Duration
	Unleased bool
	// Desk is a directory for the limits of tenants. With it, runs wait at a desk for slots and
	// limits; empty means they wait only in the queue. A desk handles several tickets concurrently,
	// so the simulation is not reproducible.
	Desk string
}

// Verdict is the result of a simulation.
type Verdict struct {
	// Err is the first broken rule; nil if none.
	Err error
	// Sum is equal for two runs of the same scenario.
	Sum   uint64
	Steps int
	Fates int
	Trace string
	// Runs is the number of runs.
	Runs int
	// Calls, Accounts and Asked are set for a story. Asked are the invocation ids of the model
	// calls, by run and node.
	Calls    []Call
	Accounts []Account
	Asked    map[string][]string
	// Lasted is the simulated time.
	Lasted time.Duration
}

// note adds a call to the sum and the trace.
func (w *World) note(c *call, f Fate) {
	w.say("%s%s", c.key(), f.suffix())
}

func (w *World) say(format string, args ...any) {
	line := fmt.Sprintf("%12s  ", time.Since(w.began).Round(time.Microsecond)) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", w.sum, line)
	w.sum = h.Sum64()
	if w.trace != nil {
		w.trace.WriteString(line + "\n")
	}
}

func (w *World) verdict() Verdict {
	v := Verdict{Err: w.broken, Sum: w.sum, Steps: w.steps, Fates: w.fates, Runs: len(w.runs), Lasted: time.Since(w.began)}
	if w.scenario.Story != nil {
		v.Calls, v.Accounts, v.Asked = w.calls, w.accounts(), w.models.asked
	}
	if w.trace != nil {
		v.Trace = w.trace.String()
	}
	return v
}
