package machine

import (
	"slices"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// WithBranchHistory sets the source's history of a branch that may end within a step.
func (m *Machine) WithBranchHistory(h *History) *Machine {
	m.branchHistory = h
	return m
}

// IsPartial reports that the history of a fork ends while a node opens an interrupt, or continues
// with its answer.
func IsPartial(st *runstate.State, types node.Catalog) bool {
	for id, n := range st.Nodes {
		if n.Status == runstate.NodeSuspended && st.Open(id) == nil ||
			n.Status == runstate.NodeRunning && types[n.TypeID].Class == node.Asks {
			return true
		}
	}
	return false
}

// Repair completes a step whose events the copied history of a fork contains only in part. No log
// of an unforked run ends within a step.
func (m *Machine) Repair(now time.Time) {
	if m.st.Record.Fork == nil || m.repaired || m.external {
		return
	}
	m.repaired = true
	m.repeatPartialQuestion(now)
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		n := m.st.Nodes[id]
		if n == nil || n.Status.Terminal() || !m.isLive() {
			continue
		}
		t := m.plan.Types[n.TypeID]
		switch {
		case n.Status == "": // the gate event is there, and node.started is missing
			m.startNode(now, id, n.Attempt)
		case n.Status == runstate.NodeRetrying && n.DelayMs == 0 && m.history == nil:
			m.startNode(now, id, n.Attempt)
		case n.Status == runstate.NodeRunning && (t.Class == node.Pure || t.Class == node.Timer && n.DelayMs == 0):
			if !m.repeatRest(now, id, n.Attempt) {
				m.redoNode(now, id, t, n.Attempt)
			}
		case t.Class != node.Asks && n.Status != runstate.NodeSuspended, m.history != nil:
		case m.st.Latest(id) == nil:
			m.continueAsking(now, id, t, n)
		default:
			m.continueResolving(now, id, t)
		}
	}
}

// repeatPartialQuestion repeats the second event of a question whose first one is in the history:
// its older event type.
func (m *Machine) repeatPartialQuestion(now time.Time) {
	if m.branchHistory == nil || m.st.Next != m.st.Record.Copied() || m.st.Next >= len(m.branchHistory.events) {
		return
	}
	e := m.branchHistory.events[m.st.Next]
	n := m.st.Nodes[e.NodeID]
	asks := e.Type == wire.EventApprovalRequested || e.Type == wire.EventClarificationRequested
	if asks && n != nil && n.Status == runstate.NodeSuspended && m.st.Open(e.NodeID) != nil {
		m.repeatEvent(now, &recorded{Event: e})
	}
}

// repeatRest repeats the rest of an attempt's events if the history has the beginning. The node is
// not executed again, because it would see its own writes. It returns false if there is no
// beginning, or no rest.
func (m *Machine) repeatRest(now time.Time, id string, attempt int) bool {
	t := m.history
	if t == nil {
		t = m.branchHistory
	}
	if t == nil || !t.nodes[id].hasBegun(attempt) {
		return false
	}
	repeated := false
	for c := t.recordedFor(id, attempt); c != nil && m.st.Nodes[id].Status == runstate.NodeRunning; c = t.recordedFor(id, attempt) {
		m.repeatEvent(now, c)
		if repeated = true; m.history == nil {
			t.nodes[id].pos++
		}
	}
	return repeated
}

// redoNode executes a node that had started and not ended.
func (m *Machine) redoNode(now time.Time, id string, t node.Type, attempt int) {
	in, trust, bad := m.gatherInput(id)
	if bad == nil {
		bad = t.CheckInput(in.Ports)
	}
	if bad == nil {
		bad = m.pinVersions(now, id, t.Changes)
	}
	if bad != nil {
		m.failNode(now, id, bad, attempt, trust)
		return
	}
	m.performNode(now, id, t, in, attempt, trust)
}

// continueAsking opens the interrupt of a node whose question is missing or partial.
func (m *Machine) continueAsking(now time.Time, id string, t node.Type, n *runstate.Node) {
	in, trust, bad := m.gatherInput(id)
	switch {
	case bad != nil:
		m.failNode(now, id, bad, n.Attempt, trust)
	case n.Status == runstate.NodeRunning:
		m.suspendForAnswer(now, id, t, in, n.Attempt, trust)
	default: // the node is suspended: only the rest is emitted
		at := interrupt.Origin{RunID: m.st.Record.RunID, NodeID: id, Count: m.st.Asked(id)}
		r, _ := interrupt.From(t.Executes(), at, in.Config) // valid: it was opened before
		if shown, ok := in.Ports["input"]; ok {
			r = r.WithArtifact(shown)
		}
		_, events := interrupt.Open(at, r, now, trust.Meet(m.nodeTrust(id)))
		m.Emit(now, slices.DeleteFunc(events, func(d wire.Draft) bool { return d.Type == wire.EventNodeSuspended })...)
	}
}

// continueResolving repeats the rest of an answer's events.
func (m *Machine) continueResolving(now time.Time, id string, t node.Type) {
	if m.branchHistory == nil || m.st.Open(id) != nil {
		return
	}
	r := m.branchHistory.nodes[id]
	for n := m.st.Nodes[id]; n.Status == runstate.NodeSuspended || n.Status == runstate.NodeRunning && t.Class == node.Asks; n = m.st.Nodes[id] {
		c := r.peek()
		if c == nil {
			m.failUnanswered(now, id)
			return
		}
		m.repeatEvent(now, c)
		r.pos++
	}
}

// failUnanswered fails a node that has an answer whose effect is unknown.
func (m *Machine) failUnanswered(now time.Time, id string) {
	source, n := "", m.st.Nodes[id]
	if f := m.st.Record.Fork; f != nil {
		source = f.SourceRunID
	}
	m.failNode(now, id, SourceMissing(source, id, n.Attempt), n.Attempt, m.nodeTrust(id))
}
