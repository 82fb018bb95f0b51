package machine

import (
	"iter"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

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
	if m.st.Record.Fork != nil {
		m.runner.repair(now)
	}
}

// unfinishedNodes yields the nodes that have begun and not ended, in graph order, while the run is
// live.
func (m *Machine) unfinishedNodes() iter.Seq2[string, *runstate.Node] {
	return func(yield func(string, *runstate.Node) bool) {
		for _, step := range m.plan.Graph.Steps {
			id := step.Node.ID
			n := m.st.Nodes[id]
			if n != nil && !n.Status.Terminal() && m.isLive() && !yield(id, n) {
				return
			}
		}
	}
}

// isGated reports whether the gate event of a node is recorded, and node.started is missing.
func isGated(n *runstate.Node) bool { return n.Status == "" }

// startsNow reports whether the next attempt of a node starts without a delay.
func startsNow(n *runstate.Node) bool { return n.Status == runstate.NodeRetrying && n.DelayMs == 0 }

// runsWithoutEffect reports whether a node has started and needs no effect or time to end.
func runsWithoutEffect(n *runstate.Node, t node.Type) bool {
	return n.Status == runstate.NodeRunning && (t.Class == node.Pure || t.Class == node.Timer && n.DelayMs == 0)
}

// isAsking reports whether a node has a question, or is to have one.
func isAsking(n *runstate.Node, t node.Type) bool {
	return t.Class == node.Asks || n.Status == runstate.NodeSuspended
}

// repair completes a step without the history of its source, which ended in another step.
func (x *execution) repair(now time.Time) {
	if x.repaired {
		return
	}
	x.repaired = true
	for id, n := range x.unfinishedNodes() {
		t := x.plan.Types[n.TypeID]
		switch {
		case x.repairEdited(now, id, n):
		case isGated(n), startsNow(n):
			x.startNode(now, id, n.Attempt)
		case runsWithoutEffect(n, t):
			x.redoNode(now, id, t, n.Attempt)
		case isAsking(n, t) && x.st.Latest(id) == nil:
			x.continueAsking(now, id, t, n)
		}
	}
}

// branch executes a branch whose copied history may end within a step.
type branch struct {
	execution
	// history is that of the source. Its cursors follow the copied events.
	history *History
}

// repair completes a step with the rest of its events in the history.
func (b *branch) repair(now time.Time) {
	if b.repaired {
		return
	}
	b.repaired = true
	b.repeatPartialQuestion(now)
	for id, n := range b.unfinishedNodes() {
		t := b.plan.Types[n.TypeID]
		switch {
		case b.repairEdited(now, id, n):
		case isGated(n), startsNow(n):
			b.startNode(now, id, n.Attempt)
		case runsWithoutEffect(n, t):
			if !b.repeatRest(now, b.history, id, n.Attempt) {
				b.redoNode(now, id, t, n.Attempt)
			}
		case isAsking(n, t) && b.st.Latest(id) == nil:
			b.continueAsking(now, id, t, n)
		case isAsking(n, t):
			b.continueResolving(now, id, t)
		}
	}
}

// repeatPartialQuestion repeats the second event of a question whose first one is in the history:
// its older event type.
func (b *branch) repeatPartialQuestion(now time.Time) {
	if b.st.Next != b.st.Record.Copied() || b.st.Next >= len(b.history.events) {
		return
	}
	e := b.history.events[b.st.Next]
	n := b.st.Nodes[e.NodeID]
	asks := e.Type == wire.EventApprovalRequested || e.Type == wire.EventClarificationRequested
	if asks && n != nil && n.Status == runstate.NodeSuspended && b.st.Open(e.NodeID) != nil {
		b.repeatEvent(now, &recorded{Event: e})
	}
}

// repeatRest repeats the rest of an attempt's events if the history has the beginning. The node is
// not executed again, because it would see its own writes. It returns false if there is no
// beginning, or no rest.
func (m *Machine) repeatRest(now time.Time, h *History, id string, attempt int) (repeated bool) {
	r := h.nodes[id]
	if !r.hasBegun(attempt) {
		return false
	}
	for m.st.Nodes[id].Status == runstate.NodeRunning {
		c, pos := h.recordedFor(id, attempt), r.pos
		if c == nil {
			break
		}
		m.repeatEvent(now, c)
		r.pos = pos + 1 // a replay has followed the event already
		repeated = true
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
		r, untrusted, bad := question(at, t, in)
		if bad != nil {
			m.failNode(now, id, bad, n.Attempt, trust)
			return
		}
		trust = trust.Meet(trustOf(untrusted))
		_, events := interrupt.Open(at, r, now, trust.Meet(m.nodeTrust(id)))
		m.Emit(now, slices.DeleteFunc(events, func(d wire.Draft) bool { return d.Type == wire.EventNodeSuspended })...)
	}
}

// continueResolving repeats the rest of an answer's events.
func (b *branch) continueResolving(now time.Time, id string, t node.Type) {
	if b.st.Open(id) != nil {
		return
	}
	r := b.history.nodes[id]
	for isUnresolved(b.st.Nodes[id], t) {
		c := r.peek()
		if c == nil {
			b.failUnanswered(now, id)
			return
		}
		b.repeatEvent(now, c)
		r.pos++
	}
}

// isUnresolved reports whether a node with an answer waits for its effect.
func isUnresolved(n *runstate.Node, t node.Type) bool {
	return n.Status == runstate.NodeSuspended || n.Status == runstate.NodeRunning && t.Class == node.Asks
}

// failUnanswered fails a node that has an answer whose effect is unknown.
func (m *Machine) failUnanswered(now time.Time, id string) {
	source, n := "", m.st.Nodes[id]
	if f := m.st.Record.Fork; f != nil {
		source = f.SourceRunID
	}
	m.failNode(now, id, SourceMissing(source, id, n.Attempt), n.Attempt, m.nodeTrust(id))
}
