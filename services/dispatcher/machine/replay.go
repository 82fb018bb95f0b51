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

// WithReplayHistory makes the machine replay a history. It executes nodes that depend only on their
// inputs, repeats all other events, and makes no external calls (OpenWOP host contract §7.2).
func (m *Machine) WithReplayHistory(h *History) *Machine {
	m.history = h
	return m
}

// IsReplay reports whether the machine replays.
func (m *Machine) IsReplay() bool { return m.history != nil }

// maxReplayEvents limits the events of one frame of a replay.
const maxReplayEvents = 512

// replayHistory advances the run to the end of its history. The source's next recorded event comes
// next here, too, so that the order is the same even if several nodes ran in parallel.
func (m *Machine) replayHistory(now time.Time) {
	m.Begin(now)
	m.Repair(now)
	for !m.st.Status.Terminal() {
		if len(m.pending) >= maxReplayEvents || m.isFull() {
			m.appendFirst = true
			return
		}
		if !m.replayStep(now) {
			m.finishPause(now)
			return
		}
	}
}

// replayStep takes one step; false if there is none.
func (m *Machine) replayStep(now time.Time) bool {
	c, outer := m.nextRecorded()
	switch {
	case c != nil && c.Sequence <= m.history.nextSequence():
	case m.isLive() && m.stepReady(now):
		return true
	case m.isLive() && m.finishIfDone(now):
		return true
	case c == nil:
		return m.isLive() && m.advanceUnrecorded(now)
	}
	m.replayEvent(now, c, outer)
	return true
}

// finishIfDone ends the run if all of its nodes ended.
func (m *Machine) finishIfDone(now time.Time) bool {
	if !m.pauseHoldsNode() {
		m.finishRun(now)
	}
	return m.st.Status.Terminal()
}

// nextRecorded returns the earliest recorded event that can occur now; nil if there is none.
func (m *Machine) nextRecorded() (c *recorded, outer bool) {
	c = m.history.external.peek()
	since, paused := m.history.external.pausedSince()
	held := m.st.Status == wire.StatusPaused
	if held && !paused && (c == nil || c.Type != wire.EventRunResumed) {
		return nil, false // the replay itself was paused
	}
	outer = c != nil
	for _, step := range m.plan.Graph.Steps {
		n := m.st.Nodes[step.Node.ID]
		if n == nil || n.Status == "" || n.Status.Terminal() {
			continue
		}
		x := m.history.nodes[step.Node.ID].peek()
		if x == nil || !m.belongsToAttempt(n, x) || c != nil && c.Sequence <= x.Sequence {
			continue
		}
		if held && (!paused || x.Sequence < since) {
			continue // a paused source records only answers
		}
		c, outer = x, false
	}
	return c, outer
}

// belongsToAttempt reports whether a recorded event belongs to the node's current or next attempt.
func (m *Machine) belongsToAttempt(n *runstate.Node, c *recorded) bool {
	switch n.Status {
	case runstate.NodeStopped:
		return c.attempt == n.Attempt || c.attempt == n.Attempt+1
	default:
		return c.attempt == n.Attempt
	}
}

// isRecomputed reports whether a node's type is executed in a replay.
func (m *Machine) isRecomputed(n *runstate.Node) bool {
	t, known := m.plan.Types[n.TypeID]
	return known && (t.Class == node.Pure || t.Class == node.Timer)
}

// replayEvent applies a recorded event.
func (m *Machine) replayEvent(now time.Time, c *recorded, outer bool) {
	if outer {
		m.replayExternal(now, c)
		return
	}
	n := m.st.Nodes[c.NodeID]
	switch {
	case m.st.Status == wire.StatusPaused: // an answer during the pause
		m.repeatEvent(now, c)
	case n.Status == runstate.NodeRetrying || n.Status == runstate.NodeStopped:
		m.startNode(now, c.NodeID, c.attempt)
	case m.isRecomputed(n): // a timer: replays do not wait
		m.Complete(now, c.NodeID, node.Output{}, wire.Trusted)
	default:
		m.repeatEvent(now, c)
	}
}

// replayExternal applies an event that came from outside.
func (m *Machine) replayExternal(now time.Time, c *recorded) {
	switch {
	case c.Type == wire.EventNodeCancelled:
		if n := m.st.Nodes[c.NodeID]; n == nil || n.Status.Terminal() {
			m.history.external.pos++ // the replay diverged here
			return
		}
	case c.Type.Terminal():
		m.cancelNodes(now, "cancelled")
	}
	m.repeatEvent(now, c)
}

// repeatEvent emits a recorded event unchanged.
func (m *Machine) repeatEvent(now time.Time, c *recorded) {
	m.placeEvent(now, wire.Draft{Type: c.Type, NodeID: c.NodeID, Payload: c.Payload, CausationID: c.CausationID, Trust: c.ContentTrust}, false)
}

// repeatGate repeats the gate events of an attempt. It returns true if the attempt did not start.
func (m *Machine) repeatGate(now time.Time, id string, attempt int) bool {
	for {
		c := m.history.recordedFor(id, attempt)
		if c == nil {
			return false
		}
		switch c.Type {
		case wire.EventModelSubstituted, wire.EventModelInsufficient:
			m.repeatEvent(now, c)
		case wire.EventNodeFailed:
			m.repeatEvent(now, c)
			return true
		case wire.EventCapBreached:
			m.repeatEvent(now, c)
			m.endAsRecorded(now)
			return true
		default:
			return false
		}
	}
}

// endAsRecorded ends a run that exceeded a limit in the source.
func (m *Machine) endAsRecorded(now time.Time) {
	for !m.st.Status.Terminal() {
		c := m.history.external.peek()
		if c == nil {
			m.cancelNodes(now, string(fault.RecursionLimit))
			m.endFailed(now, "", &wire.NodeError{Code: string(fault.RecursionLimit), Message: "the run executed more nodes than its limit allowed"})
			return
		}
		m.replayExternal(now, c)
	}
}

// advanceUnrecorded continues beyond the recorded history. A timer fires immediately, a waiting
// attempt starts, and a node that needs an external call fails.
func (m *Machine) advanceUnrecorded(now time.Time) bool {
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
		case n.Status == runstate.NodeRunning && m.isRecomputed(n):
			m.Complete(now, id, node.Output{}, wire.Trusted)
			return true
		case n.Status == runstate.NodeRunning:
			m.failNode(now, id, m.history.missingOutcome(id, n.Attempt), n.Attempt, wire.Trusted)
			return true
		case n.Status == runstate.NodeSuspended && n.DelayMs > 0 && !now.Before(n.Due()):
			m.escalateOrExpire(now, id)
			return true
		}
	}
	return false
}

// missingOutcome is the error of a node without a recorded outcome.
func (h *History) missingOutcome(id string, attempt int) *wire.NodeError {
	return SourceMissing(h.fork.SourceRunID, id, attempt)
}

// SourceMissing is the error of a replayed node whose outcome the source has not recorded. A replay
// makes no calls.
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

// compareWithSource records the first divergence of the replay from its source (OpenWOP host
// contract §7.2, §12 no. 34). The replay continues.
func (m *Machine) compareWithSource(now time.Time, d wire.Draft) {
	x, parts := m.history.diverges(d)
	if !parts {
		return
	}
	p := divergedPayload{
		SourceRunID: m.history.fork.SourceRunID, AtSequence: m.st.Next, ReplayEventID: wire.EventID(m.st.Record.RunID, m.st.Next+1),
		DivergenceKind: "extra", DivergencePoint: d.Type,
	}
	if x != nil {
		p.AtSequence, p.OriginalEventID, p.DivergencePoint, p.DivergenceKind = x.Sequence, x.EventID, x.Type, "type-mismatch"
		if d.Type.Terminal() {
			p.DivergenceKind = "missing"
		}
	}
	m.history.diverged = true
	m.placeEvent(now, wire.Draft{Type: wire.EventReplayDiverged, Payload: strictjson.Render(p)}, true)
}

// pinAsRecorded pins the version that the source pinned.
func (m *Machine) pinAsRecorded(now time.Time, change string) {
	if m.history == nil {
		return
	}
	var p pinnedPayload
	if c := m.history.external.peek(); c != nil && c.Type == wire.EventVersionPinned && json.Unmarshal(c.Payload, &p) == nil && p.ChangeID == change {
		m.repeatEvent(now, c)
	}
}
