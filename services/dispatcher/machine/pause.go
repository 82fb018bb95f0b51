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

// Pause stops a running run: at once, or as soon as nothing is at work. Until then it is
// remembered, and no node starts.
func (m *Machine) Pause(now time.Time, policy wire.DrainPolicy, reason, by string) {
	if policy == wire.DrainNot || !m.hasRunningNode() {
		m.emitPaused(now, policy, reason)
		return
	}
	m.rememberNote(wire.Note{Pause: &wire.PauseNote{Reason: reason, By: by, At: wire.FormatTime(now)}})
	m.wakeNeeded = true // it may be asleep, and its pause due by a timer
}

func (m *Machine) emitPaused(now time.Time, policy wire.DrainPolicy, reason string) {
	m.emitData(now, wire.EventRunPaused, "", wire.Trusted, pausedPayload{Reason: reason, DrainPolicy: policy})
}

// Resume lets a paused run go on. Nodes whose attempt the pause cut begin anew.
func (m *Machine) Resume(now time.Time, reason string) {
	m.emitData(now, wire.EventRunResumed, "", wire.Trusted, struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	m.wakeNeeded = true
}

// hasRunningNode reports whether a node is being executed. One that waits for its next attempt is
// not, nor is one that waits for its child.
func (m *Machine) hasRunningNode() bool {
	for _, n := range m.st.Nodes {
		if n.Status == runstate.NodeRunning && n.Child == nil {
			return true
		}
	}
	return false
}

// finishPause ends the wait of a pause once nothing is at work. A run that has nothing
// left to start ends instead.
func (m *Machine) finishPause(now time.Time) {
	if p := m.st.Pausing; p != nil && !m.st.Status.Terminal() && !m.hasRunningNode() {
		m.emitPaused(now, wire.DrainCurrent, p.Reason)
	}
}

// restartStopped begins the attempts anew that a pause has cut. One whose answer is in the log
// stays the same attempt, so that nobody is asked twice.
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
