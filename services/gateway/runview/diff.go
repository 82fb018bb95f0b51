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
	// heldA and heldB are events without a counterpart so far. The first of each is at seqA
	// and seqB.
	heldA, heldB [][]byte
	seqA, seqB   int64
	bytes        int
}

// NewComparer starts the comparison of two runs.
func NewComparer(a, b string) *Comparer {
	return &Comparer{
		report: DiffReport{A: a, B: b, EventDiffs: []EventDiff{}, StateDiff: map[string]ValueDiff{}},
		a:      newNamer(a), b: newNamer(b),
	}
}

// SetAncestors sets the runs that a and b were forked from, nearest first; nil if none.
func (c *Comparer) SetAncestors(a, b []string) *Comparer {
	c.a.runIDs = append(c.a.runIDs, a...)
	c.b.runIDs = append(c.b.runIDs, b...)
	return c
}

// Add adds the events at the next sequence. An event is nil if its log has ended. It returns
// false if the report is full.
func (c *Comparer) Add(a, b []byte) bool {
	if a != nil {
		c.heldA = append(c.heldA, a)
	}
	if b != nil {
		c.heldB = append(c.heldB, b)
	}
	return c.compareHeld(a == nil, b == nil)
}

// compareHeld compares held events that have a counterpart, or whose counterpart's log has
// ended.
func (c *Comparer) compareHeld(endA, endB bool) bool {
	for {
		replayEventA, replayEventB := len(c.heldA) > 0 && isReplayEvent(c.heldA[0]), len(c.heldB) > 0 && isReplayEvent(c.heldB[0])
		var a, b []byte
		switch {
		case replayEventA != replayEventB:
			if replayEventA {
				a = popFirst(&c.heldA)
			} else {
				b = popFirst(&c.heldB)
			}
		case len(c.heldA) > 0 && len(c.heldB) > 0:
			a, b = popFirst(&c.heldA), popFirst(&c.heldB)
		case len(c.heldA) > 0 && endB:
			a = popFirst(&c.heldA)
		case len(c.heldB) > 0 && endA:
			b = popFirst(&c.heldB)
		default:
			return true
		}
		if !c.comparePair(a, b) {
			return false
		}
	}
}

func popFirst(held *[][]byte) []byte {
	e := (*held)[0]
	*held = (*held)[1:]
	return e
}

// isReplayEvent reports an event that only a replay records, so that its source has no
// counterpart.
func isReplayEvent(doc []byte) bool {
	var e event
	return bytes.Contains(doc, []byte(wire.EventReplayDiverged)) && json.Unmarshal(doc, &e) == nil && e.Type == string(wire.EventReplayDiverged)
}

// comparePair compares two events; nil means no counterpart. A difference is reported at the
// sequence in a, or in b if a has no event.
func (c *Comparer) comparePair(a, b []byte) bool {
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

// event is the part of an event that is compared.
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

// Report compares the snapshots and returns the report. inFlight means that a run is not
// finished, so that only the events both have so far were compared.
func (c *Comparer) Report(a, b []byte, inFlight bool) DiffReport {
	if !inFlight && !c.report.Truncated {
		c.compareHeld(true, true)
	}
	stateTruncated := c.states(a, b)
	c.report.Truncated = c.report.Truncated || inFlight || stateTruncated
	return c.report
}
