package machine

import (
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The effect of a running node is held if it has no call in flight. Either it waits for a free place
// among the parallel effects, a request started it while another executor owns the run, or an
// executor released it before its first call, or between two rounds of an answer. The note of a frame
// lists held nodes, so the next executor knows that nothing was sent. A node that starts and begins
// within one frame appears in no note.

// holdEffect marks the effect of a running node as not begun. A replay has no effects to begin.
func (m *Machine) holdEffect(id string) {
	delete(m.handedOut, id)
	n := m.st.Nodes[id]
	if !m.env.executesEffects() || n == nil || n.Status != runstate.NodeRunning || n.Held {
		return
	}
	n.Hold()
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

// ReleaseEffects records that the effects of nodes were handed out and have no call in flight: the
// next one was certainly not sent, and the results of earlier ones are recorded. It reports whether
// there is something to append. An effect with a recorded answer needs no release: the next executor
// continues from the answer.
func (m *Machine) ReleaseEffects(nodeIDs ...string) bool {
	released := false
	for _, id := range nodeIDs {
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning {
			continue
		}
		delete(m.handedOut, id)
		if m.plan.Types[n.TypeID].Class == node.Effect && !m.hasAnswer(id) {
			m.holdEffect(id)
			released = true
		}
	}
	return released
}
