package runcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Source describes how complete the checked events are.
type Source struct {
	// Trimmed: the payloads lack their content, as in a debug bundle.
	Trimmed bool
	// Cut: events may be missing before the last one, as in a bundle that was too large.
	Cut bool
}

// Check checks the events of one run, added in order.
type Check struct {
	source   Source
	state    *runstate.State
	findings []Finding
	skipped  map[Rule]string

	runID string
	next  int
	count int
	// ended is the event that ended the run; nil if none so far.
	ended *wire.Event
	// broken: events are missing, so statuses can no longer be checked.
	broken bool

	ids      map[string]int
	causes   map[string]int
	recorded map[string]int
	// emissions holds the number of the last retry of an emission, by node.
	emissions map[string]int
	written   map[string]bool
}

// New returns a Check that starts at a run's first event.
func New(of Source) *Check {
	return &Check{
		source: of, state: runstate.New(&wire.RunRecord{}), skipped: map[Rule]string{}, ids: map[string]int{},
		causes: map[string]int{}, recorded: map[string]int{}, emissions: map[string]int{}, written: map[string]bool{},
	}
}

// Findings returns all findings, in the order of the events.
func (c *Check) Findings() []Finding { return c.findings }

// Skipped returns why a rule could not be checked; empty if it was checked.
func (c *Check) Skipped(r Rule) string { return c.skipped[r] }

// Skip marks a rule as not checked.
func (c *Check) Skip(r Rule, why string) { c.skipped[r] = why }

// Events returns the number of added events.
func (c *Check) Events() int { return c.count }

// Next returns the sequence that the next event must have.
func (c *Check) Next() int { return c.next }

// RunID returns the run of the events.
func (c *Check) RunID() string { return c.runID }

// Status returns the run's status after the events.
func (c *Check) Status() wire.Status { return c.state.Status }

func (c *Check) find(r Rule, seq int, format string, args ...any) {
	c.findings = append(c.findings, Finding{Rule: r, Sequence: &seq, Message: fmt.Sprintf(format, args...)})
}

// details are the payload members that rules need.
type details struct {
	Attempt     int    `json:"attempt"`
	DrainPolicy string `json:"drainPolicy"`
	Name        string `json:"name"`
	Fields      struct {
		Outcome string `json:"outcome"`
	} `json:"fields"`
}

// Add checks the next event.
func (c *Check) Add(e wire.Event) {
	var d details
	_ = json.Unmarshal(e.Payload, &d) // an unreadable payload counts as an empty one
	c.count++
	c.document(e)
	inOrder := c.sequence(e)
	c.startAndEnd(e)
	c.caused(e)
	c.once(e, d)
	if e.Type == wire.EventRunPaused && c.source.Trimmed && d.DrainPolicy == "" {
		c.skipStatuses("the bundle does not record whether the pause cut running nodes")
	}
	if c.count == 1 && e.Type == wire.EventRunCancelled {
		c.ended = &e
		c.skipStatuses("the run was cancelled before it started")
	}
	if !inOrder || c.broken || c.ended != nil {
		return
	}
	c.moves(e, d)
	if e.Type.Terminal() {
		c.ended = &e
	}
}

// document checks an event by itself, and its id against earlier ids.
func (c *Check) document(e wire.Event) {
	if c.runID == "" {
		c.runID = e.RunID
	}
	switch {
	case e.RunID == "":
		c.find(Document, e.Sequence, "it has no runId")
	case e.RunID != c.runID:
		c.find(Document, e.Sequence, "it belongs to run %s", e.RunID)
	}
	if e.EventID == "" {
		c.find(Document, e.Sequence, "it has no id")
	} else if first, known := c.ids[e.EventID]; known {
		c.find(Document, e.Sequence, "it has the id of event %d, %s", first, e.EventID)
	} else {
		c.ids[e.EventID] = e.Sequence
	}
	if e.Type == "" {
		c.find(Document, e.Sequence, "it has no type")
	}
	if p := bytes.TrimSpace(e.Payload); len(p) == 0 || bytes.Equal(p, []byte("null")) {
		c.find(Document, e.Sequence, "it has no payload")
	}
	if _, err := time.Parse(time.RFC3339, e.Timestamp); err != nil {
		c.find(Document, e.Sequence, "its timestamp %q is invalid", e.Timestamp)
	}
}

// sequence reports whether the event directly follows the previous one.
func (c *Check) sequence(e wire.Event) bool {
	want := c.next
	switch {
	case e.Sequence == want:
		c.next++
		return true
	case e.Sequence < want:
		c.find(Sequence, e.Sequence, "it comes after event %d", want-1)
		return false
	case c.source.Cut && !c.broken:
		c.skipStatuses(fmt.Sprintf("the file is cut: events %d to %d are not in it", want, e.Sequence-1))
	default:
		c.find(Sequence, e.Sequence, "it follows event %d", want-1)
		c.skipStatuses("events are missing")
	}
	c.next = e.Sequence + 1
	return false
}

// skipStatuses skips the rules that depend on statuses from here on.
func (c *Check) skipStatuses(why string) {
	c.broken = true
	for _, r := range []Rule{RunStatus, NodeStatus, Attempt, Snapshot} {
		if c.skipped[r] == "" {
			c.skipped[r] = why
		}
	}
}

func (c *Check) startAndEnd(e wire.Event) {
	switch first := c.count == 1; {
	case first && e.Type != wire.EventRunStarted && e.Type != wire.EventRunCancelled:
		c.find(Start, e.Sequence, "the first event is %s", e.Type)
	case !first && e.Type == wire.EventRunStarted:
		c.find(Start, e.Sequence, "the run starts again")
	}
	if c.ended != nil {
		c.find(End, e.Sequence, "%s comes after the end, %s at %d", e.Type, c.ended.Type, c.ended.Sequence)
	}
}

// caused checks the cause: the id of an event, or the correlationId of an envelope, which is not an
// event (OpenWOP host contract §3.3).
func (c *Check) caused(e wire.Event) {
	if by, named := c.causes[e.EventID]; named && e.EventID != "" {
		c.find(Cause, by, "its cause %s is event %d, which comes later", e.EventID, e.Sequence)
	}
	if e.CausationID == "" {
		return
	}
	if e.CausationID == e.EventID {
		c.find(Cause, e.Sequence, "it is its own cause")
		return
	}
	if _, before := c.ids[e.CausationID]; before {
		return
	}
	if _, named := c.causes[e.CausationID]; !named {
		c.causes[e.CausationID] = e.Sequence
	}
}

// once checks that a correlationId has one outcome (OpenWOP envelope contract §9).
func (c *Check) once(e wire.Event, d details) {
	accepted := e.Type == wire.EventArtifactCreated || e.Type == wire.EventClarificationRequested ||
		e.Type == wire.EventLogAppended && d.Fields.Outcome == "accepted"
	if e.CausationID == "" || !accepted {
		return
	}
	if first, known := c.recorded[e.CausationID]; known {
		c.find(Envelope, e.Sequence, "the envelope %s was recorded at %d already", e.CausationID, first)
		return
	}
	c.recorded[e.CausationID] = e.Sequence
}

// moves folds the event and checks the transition.
func (c *Check) moves(e wire.Event, d details) {
	before, nodeBefore := c.state.Status, c.node(e.NodeID)
	c.attempts(e, d)
	c.state.Apply(e)
	after, nodeAfter := c.state.Status, c.node(e.NodeID)
	if !runstate.MayMove(before, e.Type, after) && !mayBeEnding(before, e.Type) {
		c.find(RunStatus, e.Sequence, "%s while the run is %s", e.Type, before)
	}
	if e.NodeID != "" && !runstate.MayMoveNode(nodeBefore, e.Type, nodeAfter) {
		c.find(NodeStatus, e.Sequence, "%s while the node %s %s", e.Type, e.NodeID, statusPhrase(nodeBefore))
	}
	if e.Type == wire.EventVariableChanged && d.Name != "" {
		c.written[d.Name] = true
	}
}

// mayBeEnding: the cancellation of a paused run is not an event.
func mayBeEnding(before wire.Status, t wire.EventType) bool {
	return before == wire.StatusPaused && runstate.MayMove(wire.StatusCancelling, t, wire.StatusCancelling)
}

func statusPhrase(s runstate.NodeStatus) string {
	if s == runstate.NodeNever {
		return "has not started"
	}
	return "is " + string(s)
}

func (c *Check) node(id string) runstate.NodeStatus {
	if n := c.state.Nodes[id]; n != nil {
		return n.Status
	}
	return runstate.NodeNever
}

// attempts checks that attempts of a node count from 0 and retries of an emission from 2.
func (c *Check) attempts(e wire.Event, d details) {
	switch e.Type {
	case wire.EventNodeStarted:
		delete(c.emissions, e.NodeID)
		want := 0
		switch c.node(e.NodeID) {
		case runstate.NodeNever:
		case runstate.NodeRetrying: // the retry event has set the number
			want = c.state.Nodes[e.NodeID].Attempt
		default:
			want = c.state.Nodes[e.NodeID].Attempt + 1
		}
		if d.Attempt != want {
			c.find(Attempt, e.Sequence, "node %s starts attempt %d, not %d", e.NodeID, d.Attempt, want)
		}
	case wire.EventNodeRetried:
		if n := c.state.Nodes[e.NodeID]; n != nil && d.Attempt != n.Attempt+1 {
			c.find(Attempt, e.Sequence, "node %s is retried with attempt %d after attempt %d", e.NodeID, d.Attempt, n.Attempt)
		}
	case wire.EventEnvelopeRetryAttempted:
		if last := max(c.emissions[e.NodeID], 1); d.Attempt != 2 && d.Attempt != last+1 {
			c.find(Attempt, e.Sequence, "node %s calls its model for attempt %d after attempt %d", e.NodeID, d.Attempt, last)
		}
		c.emissions[e.NodeID] = d.Attempt
	}
}
