package runview

import (
	"bytes"
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
)

// DiffOp says how an event differs.
type DiffOp string

// The ways in which an event can differ.
const (
	Added   DiffOp = "added"   // only b has it
	Removed DiffOp = "removed" // only a has it
	Changed DiffOp = "changed"
)

// EventDiff is a place at which the logs differ.
type EventDiff struct {
	Seq    int64           `json:"seq"`
	Op     DiffOp          `json:"op"`
	AEvent json.RawMessage `json:"aEvent,omitempty"`
	BEvent json.RawMessage `json:"bEvent,omitempty"`
}

// DiffReport is how two runs differ.
type DiffReport struct {
	A             string               `json:"a"`
	B             string               `json:"b"`
	DivergedAtSeq *int64               `json:"divergedAtSeq"`
	EventDiffs    []EventDiff          `json:"eventDiffs"`
	StateDiff     map[string]ValueDiff `json:"stateDiff"`
	// Truncated says that not all was compared, or not all that differs is told.
	Truncated bool `json:"truncated,omitempty"`
}

// Bounds of a report.
const (
	maxEventDiffs = 1000
	maxEventBytes = 4 << 20
)

// Comparer compares the logs of two runs, event by event, and then their states (OpenWOP
// host contract §2.9).
//
// It aligns events by sequence and compares type, node and payload. It ignores what the
// host generates for each run: ids, and times that it measures. Two runs of one workflow
// that took the same path are therefore equal, and so are a replay and its source. A
// replay.diverged event is reported, but does not shift the alignment.
type Comparer struct {
	report DiffReport
	a, b   namer
	// heldA and heldB are events that wait for one of the other log; the first of each is at
	// seqA and seqB.
	heldA, heldB [][]byte
	seqA, seqB   int64
	bytes        int
}

// NewComparer begins a comparison of two runs.
func NewComparer(a, b string) *Comparer {
	return &Comparer{
		report: DiffReport{A: a, B: b, EventDiffs: []EventDiff{}, StateDiff: map[string]ValueDiff{}},
		a:      newNamer(a), b: newNamer(b),
	}
}

// SetAncestors says from which runs the two come, the source, its source and so on; empty: from
// none.
func (c *Comparer) SetAncestors(a, b []string) *Comparer {
	c.a.runIDs = append(c.a.runIDs, a...)
	c.b.runIDs = append(c.b.runIDs, b...)
	return c
}

// Add takes the events at the next sequence; one of them is nil where its log has ended.
// It reports whether there is room for more.
func (c *Comparer) Add(a, b []byte) bool {
	if a != nil {
		c.heldA = append(c.heldA, a)
	}
	if b != nil {
		c.heldB = append(c.heldB, b)
	}
	return c.settle(a == nil, b == nil)
}

// settle compares what is held as far as it has a counterpart, or as a log has ended.
func (c *Comparer) settle(endA, endB bool) bool {
	for {
		asideA, asideB := len(c.heldA) > 0 && aside(c.heldA[0]), len(c.heldB) > 0 && aside(c.heldB[0])
		var a, b []byte
		switch {
		case asideA != asideB:
			if asideA {
				a = c.take(&c.heldA)
			} else {
				b = c.take(&c.heldB)
			}
		case len(c.heldA) > 0 && len(c.heldB) > 0:
			a, b = c.take(&c.heldA), c.take(&c.heldB)
		case len(c.heldA) > 0 && endB:
			a = c.take(&c.heldA)
		case len(c.heldB) > 0 && endA:
			b = c.take(&c.heldB)
		default:
			return true
		}
		if !c.pair(a, b) {
			return false
		}
	}
}

func (*Comparer) take(held *[][]byte) []byte {
	e := (*held)[0]
	*held = (*held)[1:]
	return e
}

// aside knows what a replay says of its way, and its source has not.
func aside(doc []byte) bool {
	var e event
	return bytes.Contains(doc, []byte(wire.EventReplayDiverged)) && json.Unmarshal(doc, &e) == nil && e.Type == string(wire.EventReplayDiverged)
}

// pair compares an event with its counterpart; nil: it has none. It is at the sequence that
// it has in a, or in b if a has none.
func (c *Comparer) pair(a, b []byte) bool {
	seq := c.seqA
	if a != nil {
		c.seqA++
	} else {
		seq = c.seqB
	}
	if b != nil {
		c.seqB++
	}
	d := EventDiff{Seq: seq, AEvent: a, BEvent: b}
	switch {
	case a == nil:
		d.Op = Added
	case b == nil:
		d.Op = Removed
	case c.same(a, b):
		return true
	default:
		d.Op = Changed
	}
	if c.report.DivergedAtSeq == nil {
		c.report.DivergedAtSeq = &seq
	}
	c.bytes += len(a) + len(b)
	if len(c.report.EventDiffs) == maxEventDiffs || c.bytes > maxEventBytes {
		c.report.Truncated = true
		return false
	}
	c.report.EventDiffs = append(c.report.EventDiffs, d)
	return true
}

// event is what counts of an event.
type event struct {
	Type    string          `json:"type"`
	NodeID  string          `json:"nodeId"`
	Payload json.RawMessage `json:"payload"`
}

func (c *Comparer) same(a, b []byte) bool {
	var x, y event
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return x.Type == y.Type && x.NodeID == y.NodeID && c.a.payload(x.Payload) == c.b.payload(y.Payload)
}

// Report compares the runs' snapshots and gives the report. inFlight says that a run goes
// on, so that only what both have done so far was compared.
func (c *Comparer) Report(a, b []byte, inFlight bool) DiffReport {
	if !inFlight && !c.report.Truncated {
		c.settle(true, true)
	}
	cut := c.states(a, b)
	c.report.Truncated = c.report.Truncated || inFlight || cut
	return c.report
}
