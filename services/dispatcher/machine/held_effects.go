package machine

import (
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The effect of a running node is held if it has not begun. Either it waits for a free place among
// the parallel effects, a request started it while another executor owns the run, or an executor
// released it. The note of a frame lists held nodes, so the next executor knows that nothing was
// sent. A node that starts and begins within one frame appears in no note.

// holdEffect marks the effect of a running node as not begun. A replay has no effects to begin.
func (m *Machine) holdEffect(id string) {
	delete(m.handedOut, id)
	n := m.st.Nodes[id]
	if !m.env.executesEffects() || n == nil || n.Status != runstate.NodeRunning || n.Held {
		return
	}
	n.Held = true
	m.pending.noteHeld(id)
}

// beginEffects marks held effects as begun by this machine.
func (x *execution) beginEffects(effects []Effect) {
	for _, e := range effects {
		if n := x.st.Nodes[e.NodeID]; n.Held {
			n.Held = false
			x.pending.noteBegun(e.NodeID)
		}
	}
}

// ReleaseEffects records that the effects of nodes were handed out and certainly not sent. It
// reports whether there is something to append. Effects that have recorded chunks, rounds, retries
// or an answer are not released.
func (m *Machine) ReleaseEffects(nodeIDs ...string) bool {
	released := false
	for _, id := range nodeIDs {
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning || !m.handedOut[id] {
			continue
		}
		if m.plan.Types[n.TypeID].Class != node.Effect {
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
