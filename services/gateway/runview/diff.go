package runview

import (
	"cmp"
	"encoding/json"
	"slices"
)

// DiffOp is how an event differs.
type DiffOp string

// The ways in which an event can differ.
const (
	Added   DiffOp = "added"   // only in b
	Removed DiffOp = "removed" // only in a
	Changed DiffOp = "changed"
)

// EventDiff is a difference of the logs.
type EventDiff struct {
	Seq    int64           `json:"seq"`
	Op     DiffOp          `json:"op"`
	AEvent json.RawMessage `json:"aEvent,omitempty"`
	BEvent json.RawMessage `json:"bEvent,omitempty"`
}

// DiffReport describes how two runs differ.
type DiffReport struct {
	A             string               `json:"a"`
	B             string               `json:"b"`
	DivergedAtSeq *int64               `json:"divergedAtSeq"`
	EventDiffs    []EventDiff          `json:"eventDiffs"`
	StateDiff     map[string]ValueDiff `json:"stateDiff"`
	// Truncated means that the comparison or the report is incomplete.
	Truncated bool `json:"truncated,omitempty"`
}

// Bounds of a report.
const (
	maxEventDiffs = 1000
	maxEventBytes = 4 << 20
	// maxLogBytes limits the events of one log that are compared.
	maxLogBytes = 16 << 20
)

// Comparer compares the logs of two runs, node by node, and then their states (OpenWOP host
// contract §2.9).
//
// It pairs the events of a node so that as many as possible are equal, and compares type, node and
// payload. The chunks of one answer count as one event, however many there are. It ignores what the
// host generates for each run: ids, times that it measures, and the order of events of different
// nodes. Two runs of one workflow that took the same path are therefore equal, and so are a replay
// and its source.
type Comparer struct {
	report DiffReport
	a, b   logReader
}

// NewComparer starts the comparison of two runs.
func NewComparer(a, b string) *Comparer {
	return &Comparer{
		report: DiffReport{A: a, B: b, EventDiffs: []EventDiff{}, StateDiff: map[string]ValueDiff{}},
		a:      newLogReader(a), b: newLogReader(b),
	}
}

// SetAncestors sets the runs that a and b were forked from, nearest first; nil if none.
func (c *Comparer) SetAncestors(a, b []string) *Comparer {
	c.a.runIDs = append(c.a.runIDs, a...)
	c.b.runIDs = append(c.b.runIDs, b...)
	return c
}

// Add adds the events at the next sequence. An event is nil if its log has ended. It returns
// false if no more events can be compared.
func (c *Comparer) Add(a, b []byte) bool {
	c.report.Truncated = !c.a.add(a) || !c.b.add(b)
	return !c.report.Truncated
}

// Report compares the logs and the snapshots and returns the report. inFlight means that a run is
// not finished, so that only what both have so far was compared: events after the last one that both
// have may still follow in the other.
func (c *Comparer) Report(a, b []byte, inFlight bool) DiffReport {
	c.events(inFlight || c.report.Truncated)
	statesTruncated := c.states(a, b)
	c.report.Truncated = c.report.Truncated || inFlight || statesTruncated
	return c.report
}

// events reports the differences of the events in the order of a. An event that only b has follows
// the events of a that precede it in b. open means that the logs do not end where they were read to.
func (c *Comparer) events(open bool) {
	c.a.closeAll()
	c.b.closeAll()
	for node, of := range c.a.nodes {
		pairUp(of, c.b.nodes[node])
	}
	lastA, lastB := lastPaired(c.a.entries), lastPaired(c.b.entries)
	var found []placedDiff
	for _, e := range c.a.entries {
		switch {
		case e.pair == nil && open && e.seq > lastA:
		case e.pair == nil:
			found = append(found, placedDiff{e.seq, -1, EventDiff{Seq: e.seq, Op: Removed, AEvent: e.document()}})
		case e.sum != e.pair.sum:
			found = append(found, placedDiff{e.seq, -1, EventDiff{
				Seq: e.seq, Op: Changed, AEvent: e.document(), BEvent: e.pair.document(),
			}})
		}
	}
	after := int64(-1)
	for _, e := range c.b.entries {
		switch {
		case e.pair != nil:
			after = max(after, e.pair.seq)
		case open && e.seq > lastB:
		default:
			found = append(found, placedDiff{after, e.seq, EventDiff{Seq: e.seq, Op: Added, BEvent: e.document()}})
		}
	}
	slices.SortStableFunc(found, func(x, y placedDiff) int {
		return cmp.Or(cmp.Compare(x.after, y.after), cmp.Compare(x.then, y.then))
	})
	c.keep(found)
}

// placedDiff is a difference and its place: after an event of a, and then in the order of b.
type placedDiff struct {
	after, then int64
	diff        EventDiff
}

// lastPaired is the sequence of the last event that the other log has, too; -1: none.
func lastPaired(entries []*entry) int64 {
	for _, e := range slices.Backward(entries) {
		if e.pair != nil {
			return e.seq
		}
	}
	return -1
}

// keep puts as many differences into the report as it may have.
func (c *Comparer) keep(found []placedDiff) {
	size := 0
	for i, f := range found {
		if i == 0 {
			c.report.DivergedAtSeq = &found[0].diff.Seq
		}
		size += len(f.diff.AEvent) + len(f.diff.BEvent)
		if len(c.report.EventDiffs) == maxEventDiffs || size > maxEventBytes {
			c.report.Truncated = true
			return
		}
		c.report.EventDiffs = append(c.report.EventDiffs, f.diff)
	}
}
