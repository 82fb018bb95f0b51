package machine

import (
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

type pausedPayload struct {
	Reason      string           `json:"reason,omitempty"`
	DrainPolicy wire.DrainPolicy `json:"drainPolicy"`
}

// Pause pauses a run: immediately, or once no node is running. Until then the request is in a note,
// and no node starts.
func (m *Machine) Pause(now time.Time, policy wire.DrainPolicy, reason, by string) {
	if policy == wire.DrainNot || !m.hasRunningNode() {
		m.emitPaused(now, policy, reason)
		return
	}
	m.rememberNote(wire.Note{Pause: &wire.PauseNote{Reason: reason, By: by, At: wire.FormatTime(now)}})
	m.pending.wake = true // the run may wait, and a timer may complete the pause
}

func (m *Machine) emitPaused(now time.Time, policy wire.DrainPolicy, reason string) {
	m.emitData(now, wire.EventRunPaused, "", wire.Trusted, pausedPayload{Reason: reason, DrainPolicy: policy})
}

// Resume continues a paused run. Attempts that the pause stopped start again. A pause that has not
// taken effect is withdrawn.
func (m *Machine) Resume(now time.Time, reason string) {
	if m.st.Pausing != nil {
		m.rememberNote(wire.Note{Unpause: true})
		m.pending.wake = true // nodes that the pause kept from starting may start
		return
	}
	m.emitData(now, wire.EventRunResumed, "", wire.Trusted, struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	m.pending.wake = true
}

// hasRunningNode reports whether a node is executed. A node that waits for its next attempt or its
// child is not.
func (m *Machine) hasRunningNode() bool {
	for _, n := range m.st.Nodes {
		if n.Status == runstate.NodeRunning && n.Child == nil {
			return true
		}
	}
	return false
}

// finishPause pauses a run once no node is running. A run with nothing left to start ends when it is
// resumed: the caller's request was answered with its pause.
func (m *Machine) finishPause(now time.Time) {
	if p := m.st.Pausing; p != nil && !m.st.Status.Terminal() && !m.hasRunningNode() {
		m.emitPaused(now, wire.DrainCurrent, p.Reason)
	}
}

// restartStopped starts a stopped attempt again. An attempt whose answer is in the log keeps its
// number, so that its model is not called twice.
func (m *Machine) restartStopped(now time.Time) bool {
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeStopped {
			continue
		}
		attempt := n.Attempt
		if !m.hasAnswer(id) {
			attempt++
		}
		m.startNode(now, id, attempt)
		return true
	}
	return false
}
