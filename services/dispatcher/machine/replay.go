package machine

import (
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Replaying makes the machine one that replays: nodes that follow from their inputs are
// executed, everything else is played from the tape, and nothing is asked of anybody
// (OpenWOP host contract §7.2).
func (m *Machine) Replaying(t *Tape) *Machine {
	m.tape = t
	return m
}

// Replays reports whether the machine replays.
func (m *Machine) Replays() bool { return m.tape != nil }

// maxPlaced bounds what a replay places before it is appended, in events.
const maxPlaced = 512

// replay takes the run as far as its tape goes. Where the source's next event is on the
// tape, it comes next here: that way the order is the source's also where several nodes
// were at work at a time.
func (m *Machine) replay(now time.Time) {
	m.Begin(now)
	m.Mend(now)
	for !m.st.Status.Terminal() {
		if len(m.pending) >= maxPlaced || m.full() {
			m.more = true
			return
		}
		if !m.replayStep(now) {
			m.pauseDrained(now)
			return
		}
	}
}

// replayStep does one thing; false when nothing is left to do.
func (m *Machine) replayStep(now time.Time) bool {
	c, outer := m.cue()
	switch {
	case c != nil && c.Sequence <= m.tape.upcoming():
	case m.live() && m.stepReady(now):
		return true
	case m.live() && m.ended(now):
		return true
	case c == nil:
		return m.live() && m.unrecorded(now)
	}
	m.play(now, c, outer)
	return true
}

// ended ends the run if all of its nodes have.
func (m *Machine) ended(now time.Time) bool {
	if !m.held() {
		m.finish(now)
	}
	return m.st.Status.Terminal()
}

// cue is the earliest recorded event that can come now; nil: there is none.
func (m *Machine) cue() (c *cue, outer bool) {
	c = m.tape.outer.next()
	since, paused := m.tape.outer.paused()
	held := m.st.Status == wire.StatusPaused
	if held && !paused && (c == nil || c.Type != wire.EventRunResumed) {
		return nil, false // somebody has paused the replay itself
	}
	outer = c != nil
	for _, step := range m.plan.Graph.Steps {
		n := m.st.Nodes[step.Node.ID]
		if n == nil || n.Status == "" || n.Status.Terminal() {
			continue
		}
		x := m.tape.nodes[step.Node.ID].next()
		if x == nil || !m.continues(n, x) || c != nil && c.Sequence <= x.Sequence {
			continue
		}
		if held && (!paused || x.Sequence < since) {
			continue // while it was paused, only people answered
		}
		c, outer = x, false
	}
	return c, outer
}

// continues reports whether a cue is of the attempt that a node is in or begins next.
func (m *Machine) continues(n *runstate.Node, c *cue) bool {
	switch n.Status {
	case runstate.NodeStopped:
		return c.attempt == n.Attempt || c.attempt == n.Attempt+1
	default:
		return c.attempt == n.Attempt
	}
}

// recomputed reports whether a node's type is executed in a replay.
func (m *Machine) recomputed(n *runstate.Node) bool {
	t, known := m.plan.Types[n.TypeID]
	return known && (t.Class == node.Pure || t.Class == node.Timer)
}

// play lets a recorded event happen.
func (m *Machine) play(now time.Time, c *cue, outer bool) {
	if outer {
		m.playOuter(now, c)
		return
	}
	n := m.st.Nodes[c.NodeID]
	switch {
	case m.st.Status == wire.StatusPaused: // somebody has answered
		m.repeat(now, c)
	case n.Status == runstate.NodeRetrying || n.Status == runstate.NodeStopped:
		m.startNode(now, c.NodeID, c.attempt)
	case m.recomputed(n): // a wait: no replay waits
		m.Complete(now, c.NodeID, node.Output{}, wire.Trusted)
	default:
		m.repeat(now, c)
	}
}

// playOuter lets something happen that came from outside.
func (m *Machine) playOuter(now time.Time, c *cue) {
	switch {
	case c.Type == wire.EventNodeCancelled:
		if n := m.st.Nodes[c.NodeID]; n == nil || n.Status.Terminal() {
			m.tape.outer.pos++ // it went another way here
			return
		}
	case c.Type.Terminal():
		m.cancelNodes(now, "cancelled")
	}
	m.repeat(now, c)
}

// repeat tells a recorded event again, as it was.
func (m *Machine) repeat(now time.Time, c *cue) {
	m.place(now, wire.Draft{Type: c.Type, NodeID: c.NodeID, Payload: c.Payload, CausationID: c.CausationID, Trust: c.ContentTrust}, false)
}

// regate repeats what was decided of an attempt before it began; true when it did not
// begin.
func (m *Machine) regate(now time.Time, id string, attempt int) bool {
	for {
		c := m.tape.of(id, attempt)
		if c == nil {
			return false
		}
		switch c.Type {
		case wire.EventModelSubstituted, wire.EventModelInsufficient:
			m.repeat(now, c)
		case wire.EventNodeFailed:
			m.repeat(now, c)
			return true
		case wire.EventCapBreached:
			m.repeat(now, c)
			m.endAsRecorded(now)
			return true
		default:
			return false
		}
	}
}

// endAsRecorded ends a run that a cap has ended.
func (m *Machine) endAsRecorded(now time.Time) {
	for !m.st.Status.Terminal() {
		c := m.tape.outer.next()
		if c == nil {
			m.cancelNodes(now, string(fault.RecursionLimit))
			m.fail(now, "", &wire.NodeError{Code: string(fault.RecursionLimit), Message: "the run executed more nodes than its limit allowed"})
			return
		}
		m.playOuter(now, c)
	}
}

// unrecorded goes on where the tape has nothing: a wait ends at once, a node that waits
// for its next attempt begins it, and one that asked somebody outside fails.
func (m *Machine) unrecorded(now time.Time) bool {
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		n := m.st.Nodes[id]
		if n == nil {
			continue
		}
		switch {
		case n.Status == runstate.NodeRetrying:
			m.startNode(now, id, n.Attempt)
			return true
		case n.Status == runstate.NodeStopped:
			m.startNode(now, id, n.Attempt+1)
			return true
		case n.Status == runstate.NodeRunning && m.recomputed(n):
			m.Complete(now, id, node.Output{}, wire.Trusted)
			return true
		case n.Status == runstate.NodeRunning:
			m.failNode(now, id, m.tape.missing(id, n.Attempt), n.Attempt, wire.Trusted)
			return true
		case n.Status == runstate.NodeSuspended && n.DelayMs > 0 && !now.Before(n.Due()):
			m.overdue(now, id)
			return true
		}
	}
	return false
}

// missing is the error of a node whose outcome is on no tape.
func (t *Tape) missing(id string, attempt int) *wire.NodeError {
	return SourceMissing(t.fork.SourceRunID, id, attempt)
}

// SourceMissing is the error of a node of a replay whose outcome the source has not
// recorded: nobody is asked instead.
func SourceMissing(source, id string, attempt int) *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ReplaySourceMissing),
		Message: fmt.Sprintf("run %s has recorded no outcome of attempt %d of node %q; a replay asks nobody: fork in mode branch to execute it", source, attempt, id),
		Details: map[string]any{"sourceRunId": source, "nodeId": id, "attempt": attempt},
	}
}

type divergedPayload struct {
	SourceRunID     string         `json:"sourceRunId"`
	AtSequence      int            `json:"atSequence"`
	OriginalEventID string         `json:"originalEventId,omitempty"`
	ReplayEventID   string         `json:"replayEventId"`
	DivergenceKind  string         `json:"divergenceKind"`
	DivergencePoint wire.EventType `json:"divergencePoint"`
}

// compare tells, once, that the replay leaves the way of its source (OpenWOP host contract
// §7.2, §12 no. 34). It goes on.
func (m *Machine) compare(now time.Time, d wire.Draft) {
	x, parts := m.tape.parts(d)
	if !parts {
		return
	}
	p := divergedPayload{
		SourceRunID: m.tape.fork.SourceRunID, AtSequence: m.st.Next, ReplayEventID: wire.EventID(m.st.Record.RunID, m.st.Next+1),
		DivergenceKind: "extra", DivergencePoint: d.Type,
	}
	if x != nil {
		p.AtSequence, p.OriginalEventID, p.DivergencePoint, p.DivergenceKind = x.Sequence, x.EventID, x.Type, "type-mismatch"
		if d.Type.Terminal() {
			p.DivergenceKind = "missing"
		}
	}
	m.tape.diverged = true
	m.place(now, wire.Draft{Type: wire.EventReplayDiverged, Payload: strictjson.Render(p)}, true)
}

// pinAsRecorded settles for the version that the source has settled for.
func (m *Machine) pinAsRecorded(now time.Time, change string) {
	if m.tape == nil {
		return
	}
	var p pinnedPayload
	if c := m.tape.outer.next(); c != nil && c.Type == wire.EventVersionPinned && json.Unmarshal(c.Payload, &p) == nil && p.ChangeID == change {
		m.repeat(now, c)
	}
}
