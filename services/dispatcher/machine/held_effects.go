package machine

import (
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The effect of a running node is held if it has not begun. Either it waits for a free place among
// the parallel effects, a request started it while another executor owns the run, or an executor
// released it. The note of a frame lists held nodes, so the next executor knows that nothing was
// sent. A node that starts and begins within one frame appears in no note.

// holdEffect marks the effect of a running node as not begun.
func (m *Machine) holdEffect(id string) {
	delete(m.handedOut, id)
	n := m.st.Nodes[id]
	if m.history != nil || n == nil || n.Status != runstate.NodeRunning || n.Held {
		return
	}
	n.Held = true
	note := m.draftNote()
	note.Begun = without(note.Begun, id)
	note.Held = append(without(note.Held, id), id)
}

// beginEffect marks the effect of a node as begun by this machine. A machine that changes the run
// of another executor starts none.
func (m *Machine) beginEffect(id string) {
	n := m.st.Nodes[id]
	if !n.Held || m.external {
		return
	}
	n.Held = false
	note := m.draftNote()
	if slices.Contains(note.Held, id) { // the log has not recorded it as held
		note.Held = without(note.Held, id)
	} else {
		note.Begun = append(note.Begun, id)
	}
	if note.Empty() {
		m.note = nil
	}
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(ids, func(s string) bool { return s == id })
}

func (m *Machine) draftNote() *wire.Note {
	if m.note == nil {
		m.note = &wire.Note{}
	}
	return m.note
}

// ReleaseEffects records that the effects of nodes were handed out and certainly not sent. It
// reports whether there is something to append. Effects that have recorded chunks, rounds, retries
// or an answer are not released.
func (m *Machine) ReleaseEffects(nodeIDs ...string) bool {
	released := false
	for _, id := range nodeIDs {
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning || !m.handedOut[id] || m.plan.Types[n.TypeID].Class != node.Effect {
			continue
		}
		if n.Chunked || n.Rounds > 0 || len(n.Retries) > 0 || m.hasAnswer(id) {
			continue
		}
		m.holdEffect(id)
		released = true
	}
	return released
}
