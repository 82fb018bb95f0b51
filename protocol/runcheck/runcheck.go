package runcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Source says how whole the events are that are checked.
type Source struct {
	// Trimmed: the payloads are without their content, as those of a debug bundle.
	Trimmed bool
	// Cut: events may be missing before the last one, as in a bundle that was too large.
	Cut bool
}

// Check takes the events of one run in order.
type Check struct {
	source   Source
	state    *runstate.State
	findings []Finding
	skipped  map[Rule]string

	runID string
	next  int
	count int
	// ended is the event that ended the run; nil: none has.
	ended *wire.Event
	// broken: events are missing, and nothing can be said of statuses any more.
	broken bool

	ids      map[string]int
	causes   map[string]int
	recorded map[string]int
	// emissions are the numbers of the last further calls, by node.
	emissions map[string]int
	written   map[string]bool
}

// New checks a run from its first event on.
func New(of Source) *Check {
	return &Check{
		source: of, state: runstate.New(&wire.RunRecord{}), skipped: map[Rule]string{}, ids: map[string]int{},
		causes: map[string]int{}, recorded: map[string]int{}, emissions: map[string]int{}, written: map[string]bool{},
	}
}

// Findings are all that was found, in the order of the events.
func (c *Check) Findings() []Finding { return c.findings }

// Skipped says why a rule could not be checked; empty: it was.
func (c *Check) Skipped(r Rule) string { return c.skipped[r] }

// Skip says of a rule that it is not checked.
func (c *Check) Skip(r Rule, why string) { c.skipped[r] = why }

// Events is how many were taken.
func (c *Check) Events() int { return c.count }

// Next is the sequence that the next event must have.
func (c *Check) Next() int { return c.next }

// RunID is the run that the events are of.
func (c *Check) RunID() string { return c.runID }

// Status is where the events leave the run.
func (c *Check) Status() wire.Status { return c.state.Status }

func (c *Check) find(r Rule, seq int, format string, args ...any) {
	c.findings = append(c.findings, Finding{Rule: r, Sequence: &seq, Message: fmt.Sprintf(format, args...)})
}

// details are the members of payloads that rules look at.
type details struct {
	Attempt     int    `json:"attempt"`
	DrainPolicy string `json:"drainPolicy"`
	Name        string `json:"name"`
	Fields      struct {
		Outcome string `json:"outcome"`
	} `json:"fields"`
}

// Add takes the next event.
func (c *Check) Add(e wire.Event) {
	var d details
	_ = json.Unmarshal(e.Payload, &d) // an unreadable payload says nothing
	c.count++
	c.document(e)
	inOrder := c.sequence(e)
	c.startAndEnd(e)
	c.caused(e)
	c.once(e, d)
	if e.Type == wire.EventRunPaused && c.source.Trimmed && d.DrainPolicy == "" {
		c.unknowable("the bundle does not tell whether the pause cut what was at work")
	}
	if c.count == 1 && e.Type == wire.EventRunCancelled {
		c.ended = &e
		c.unknowable("the run was cancelled before it started")
	}
	if !inOrder || c.broken || c.ended != nil {
		return
	}
	c.moves(e, d)
	if e.Type.Terminal() {
		c.ended = &e
	}
}

// document checks the event alone, and against the others' names.
func (c *Check) document(e wire.Event) {
	if c.runID == "" {
		c.runID = e.RunID
	}
	switch {
	case e.RunID == "":
		c.find(Document, e.Sequence, "it names no run")
	case e.RunID != c.runID:
		c.find(Document, e.Sequence, "it is of the run %s", e.RunID)
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
		c.find(Document, e.Sequence, "its timestamp %q is no time", e.Timestamp)
	}
}

// sequence reports an event that follows the one before.
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
		c.unknowable(fmt.Sprintf("the file is cut: events %d to %d are not in it", want, e.Sequence-1))
	default:
		c.find(Sequence, e.Sequence, "it follows event %d", want-1)
		c.unknowable("events are missing")
	}
	c.next = e.Sequence + 1
	return false
}

// unknowable ends the rules that follow the statuses.
func (c *Check) unknowable(why string) {
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

// caused: a cause is the id of an event, or the correlationId of an envelope, which is no
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

// once: a correlationId has one outcome (OpenWOP envelope contract §9).
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

// moves folds the event, and looks where it leads.
func (c *Check) moves(e wire.Event, d details) {
	before, was := c.state.Status, c.node(e.NodeID)
	c.attempts(e, d)
	c.state.Apply(e)
	after, is := c.state.Status, c.node(e.NodeID)
	if !runstate.MayMove(before, e.Type, after) && !mayBeEnding(before, e.Type) {
		c.find(RunStatus, e.Sequence, "%s while the run is %s", e.Type, before)
	}
	if e.NodeID != "" && !runstate.MayMoveNode(was, e.Type, is) {
		c.find(NodeStatus, e.Sequence, "%s while the node %s %s", e.Type, e.NodeID, told(was))
	}
	if e.Type == wire.EventVariableChanged && d.Name != "" {
		c.written[d.Name] = true
	}
}

// mayBeEnding: that a paused run is being cancelled is no event.
func mayBeEnding(before wire.Status, t wire.EventType) bool {
	return before == wire.StatusPaused && runstate.MayMove(wire.StatusCancelling, t, wire.StatusCancelling)
}

func told(s runstate.NodeStatus) string {
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

// attempts of a node count from 0, further calls for an emission from 2.
func (c *Check) attempts(e wire.Event, d details) {
	switch e.Type {
	case wire.EventNodeStarted:
		delete(c.emissions, e.NodeID)
		want := 0
		switch c.node(e.NodeID) {
		case runstate.NodeNever:
		case runstate.NodeRetrying: // the retry has named it
			want = c.state.Nodes[e.NodeID].Attempt
		default:
			want = c.state.Nodes[e.NodeID].Attempt + 1
		}
		if d.Attempt != want {
			c.find(Attempt, e.Sequence, "node %s starts attempt %d, not %d", e.NodeID, d.Attempt, want)
		}
	case wire.EventNodeRetried:
		if n := c.state.Nodes[e.NodeID]; n != nil && d.Attempt != n.Attempt+1 {
			c.find(Attempt, e.Sequence, "node %s is to be tried for attempt %d after attempt %d", e.NodeID, d.Attempt, n.Attempt)
		}
	case wire.EventEnvelopeRetryAttempted:
		if last := max(c.emissions[e.NodeID], 1); d.Attempt != 2 && d.Attempt != last+1 {
			c.find(Attempt, e.Sequence, "node %s asks its model for attempt %d after attempt %d", e.NodeID, d.Attempt, last)
		}
		c.emissions[e.NodeID] = d.Attempt
	}
}
