package retention

import (
	"time"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/protocol/subject"
)

// A run that is kept, because of a legal hold or because it cannot be archived or erased, is tried again
// after a tenth of its retention at the latest. The wait starts with that of a sweep and doubles. This
// process forgets the waits when it ends.
const (
	maxWait = time.Hour
	// maxKept limits the runs with a wait; others are tried in each sweep.
	maxKept = 100_000
)

// keptRuns are the runs that are not tried before an instant.
type keptRuns struct{ runs *lru.Cache[subject.Run, wait] }

type wait struct {
	until time.Time
	next  time.Duration
}

func newKeptRuns() keptRuns { return keptRuns{lru.New[subject.Run, wait](maxKept)} }

// due returns the runs that are to be tried now.
func (k keptRuns) due(f Flow, runs []End, now time.Time) (out []End) {
	for _, r := range runs {
		if w, ok := k.runs.Get(f.run(r)); !ok || !now.Before(w.until) {
			out = append(out, r)
		}
	}
	return out
}

// later postpones the next try of a run.
func (k keptRuns) later(run subject.Run, keep time.Duration, now time.Time) {
	w, ok := k.runs.Get(run)
	if !ok {
		w.next = minPause
	}
	most := pauseFor(maxWait, keep)
	w.until, w.next = now.Add(min(w.next, most)), min(2*w.next, most)
	k.runs.Put(run, w, 1)
}

// done forgets a run.
func (k keptRuns) done(run subject.Run) { k.runs.Delete(run) }
