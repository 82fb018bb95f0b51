package eventlog

import (
	"hash/maphash"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// Limits of an answer with statistics, in bytes. maxRead is for the stored tallies of steps narrower
// than a day: if a span has more, its steps are wider. maxDaysRead is for days.
const (
	maxRead          = 32 << 20
	maxDaysRead      = 256 << 20
	maxWorkflowBytes = 16 << 20
	// maxOthers limits the workflows that are only counted.
	maxOthers = 100_000
)

// totals are the counts of runs and of their calls, over all models.
type totals struct {
	runs  tally.Runs
	usage tally.Calls
}

func (s *totals) add(t *tally.Tally) {
	s.runs.Merge(&t.Runs)
	for _, c := range t.Models {
		s.usage.Merge(c)
	}
}

// size estimates the memory of the totals.
func (s *totals) size() int {
	const fixed, bin, code = 512, 16, 160
	return fixed + bin*(cap(s.runs.Took)+cap(s.usage.Took)) + code*len(s.runs.Codes)
}

// workflowSums are totals by workflow. When they have maxWorkflowBytes, further workflows are only
// counted, up to maxOthers.
type workflowSums struct {
	by     map[string]*totals
	bytes  int
	others map[uint64]struct{} // hashes of their ids
	seed   maphash.Seed
}

func newWorkflowSums() workflowSums {
	return workflowSums{by: map[string]*totals{}, others: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

func (w *workflowSums) add(t *store.Tallied, limit int) {
	sum := w.by[t.WorkflowID]
	if sum == nil {
		if w.bytes >= limit {
			if len(w.others) < maxOthers {
				w.others[maphash.String(w.seed, t.WorkflowID)] = struct{}{}
			}
			return
		}
		sum = &totals{}
		w.by[t.WorkflowID] = sum
		w.bytes += len(t.WorkflowID)
	} else {
		w.bytes -= sum.size()
	}
	sum.add(&t.Tally)
	w.bytes += sum.size()
}
