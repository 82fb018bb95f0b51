package sim

import (
	"fmt"
	"hash/fnv"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// Options change how a scenario is run.
type Options struct {
	// Log stands in for the run log; nil: one that keeps the rules.
	Log func() runlog.Log
	// Traced keeps a line about every call.
	Traced bool
	// Together lets dispatchers take what effects tell at a time into one frame. Which of
	// two comes first then is nobody's seed: the simulation does not come out the same.
	Together bool
	// Prefetch is how many runs a dispatcher fetches whether it has slots for them or not; 0: as
	// many as it wants. AckWait is the queue's; 0: runlog.AckWait. Unleased lets a dispatcher
	// execute every run that it is handed. Together they are a design that executes runs twice;
	// see TestSim_FindsDispatchersWithoutLeases.
	Prefetch int
	AckWait  time.Duration
	Unleased bool
	// Desk is a directory for the limits of tenants, and has runs wait at a desk for their slots and
	// limits; empty: they wait in the queue alone. A desk works on several tickets at a time: the
	// simulation does not come out the same.
	Desk string
}

// Verdict is what a simulation came to.
type Verdict struct {
	// Err is the first broken rule; nil: none was.
	Err error
	// Sum is the same for two runs of a scenario.
	Sum   uint64
	Steps int
	Fates int
	Trace string
	// Runs is how many there were.
	Runs int
	// Calls, Accounts and Asked are those of a story: Asked are the invocation ids with which
	// models were asked, by run and node.
	Calls    []Call
	Accounts []Account
	Asked    map[string][]string
	// Lasted is simulated time.
	Lasted time.Duration
}

// note adds what happens to the sum and the trace.
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
