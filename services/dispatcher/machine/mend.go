package machine

import (
	"slices"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Mending gives a branch that may be torn what its source did next.
func (m *Machine) Mending(t *Tape) *Machine {
	m.cut = t
	return m
}

// Torn reports that a node was about to ask, or to go on with its answer, where the history
// of a fork ends.
func Torn(st *runstate.State, types node.Catalog) bool {
	for id, n := range st.Nodes {
		if n.Status == runstate.NodeSuspended && st.Open(id) == nil ||
			n.Status == runstate.NodeRunning && types[n.TypeID].Class == node.Asks {
			return true
		}
	}
	return false
}

// Mend goes on where the copied history of a fork ends between events that the run loop
// writes together. No log of a run that was not forked has such an end.
func (m *Machine) Mend(now time.Time) {
	if m.st.Record.Fork == nil || m.mended || m.beside {
		return
	}
	m.mended = true
	m.askWhole(now)
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		n := m.st.Nodes[id]
		if n == nil || n.Status.Terminal() || !m.live() {
			continue
		}
		t := m.plan.Types[n.TypeID]
		switch {
		case n.Status == "": // the gate had decided, and it had not begun
			m.startNode(now, id, n.Attempt)
		case n.Status == runstate.NodeRetrying && n.DelayMs == 0 && m.tape == nil:
			m.startNode(now, id, n.Attempt)
		case n.Status == runstate.NodeRunning && (t.Class == node.Pure || t.Class == node.Timer && n.DelayMs == 0):
			if !m.tellRest(now, id, n.Attempt) {
				m.redo(now, id, t, n.Attempt)
			}
		case t.Class != node.Asks && n.Status != runstate.NodeSuspended, m.tape != nil:
		case m.st.Latest(id) == nil:
			m.askOn(now, id, t, n)
		default:
			m.resolveOn(now, id, t)
		}
	}
}

// askWhole tells the rest of a question that the history has only begun: its older event.
func (m *Machine) askWhole(now time.Time) {
	if m.cut == nil || m.st.Next != m.st.Record.Copied() || m.st.Next >= len(m.cut.events) {
		return
	}
	e := m.cut.events[m.st.Next]
	n := m.st.Nodes[e.NodeID]
	asks := e.Type == wire.EventApprovalRequested || e.Type == wire.EventClarificationRequested
	if asks && n != nil && n.Status == runstate.NodeSuspended && m.st.Open(e.NodeID) != nil {
		m.repeat(now, &cue{Event: e})
	}
}

// tellRest tells the rest of what an attempt told of which the history has the beginning.
// The work is not done again for that: it would see its own writes. False: there is no
// beginning, or no rest.
func (m *Machine) tellRest(now time.Time, id string, attempt int) bool {
	t := m.tape
	if t == nil {
		t = m.cut
	}
	if t == nil || !t.nodes[id].begun(attempt) {
		return false
	}
	told := false
	for c := t.of(id, attempt); c != nil && m.st.Nodes[id].Status == runstate.NodeRunning; c = t.of(id, attempt) {
		m.repeat(now, c)
		if told = true; m.tape == nil {
			t.nodes[id].pos++
		}
	}
	return told
}

// redo does the work of a node that had begun it and not ended.
func (m *Machine) redo(now time.Time, id string, t node.Type, attempt int) {
	in, trust, bad := m.input(id)
	if bad == nil {
		bad = t.CheckInput(in.Ports)
	}
	if bad == nil {
		bad = m.pin(now, id, t.Changes)
	}
	if bad != nil {
		m.failNode(now, id, bad, attempt, trust)
		return
	}
	m.perform(now, id, t, in, attempt, trust)
}

// askOn asks what a node was about to ask.
func (m *Machine) askOn(now time.Time, id string, t node.Type, n *runstate.Node) {
	in, trust, bad := m.input(id)
	switch {
	case bad != nil:
		m.failNode(now, id, bad, n.Attempt, trust)
	case n.Status == runstate.NodeRunning:
		m.ask(now, id, t, in, n.Attempt, trust)
	default: // it waits already: the rest is to be told
		at := interrupt.Origin{RunID: m.st.Record.RunID, NodeID: id, Count: m.st.Asked(id)}
		r, _ := interrupt.From(t.Executes(), at, in.Config) // it was asked before
		if shown, ok := in.Ports["input"]; ok {
			r = r.WithArtifact(shown)
		}
		_, events := interrupt.Open(at, r, now, trust.Meet(m.trust(id)))
		m.Emit(now, slices.DeleteFunc(events, func(d wire.Draft) bool { return d.Type == wire.EventNodeSuspended })...)
	}
}

// resolveOn tells the rest of what an answer led to that the history has.
func (m *Machine) resolveOn(now time.Time, id string, t node.Type) {
	if m.cut == nil || m.st.Open(id) != nil {
		return
	}
	r := m.cut.nodes[id]
	for n := m.st.Nodes[id]; n.Status == runstate.NodeSuspended || n.Status == runstate.NodeRunning && t.Class == node.Asks; n = m.st.Nodes[id] {
		c := r.next()
		if c == nil {
			m.unanswered(now, id)
			return
		}
		m.repeat(now, c)
		r.pos++
	}
}

// unanswered ends a node that has an answer and does not know what that led to.
func (m *Machine) unanswered(now time.Time, id string) {
	source, n := "", m.st.Nodes[id]
	if f := m.st.Record.Fork; f != nil {
		source = f.SourceRunID
	}
	m.failNode(now, id, SourceMissing(source, id, n.Attempt), n.Attempt, m.trust(id))
}
