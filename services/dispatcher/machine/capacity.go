package machine

import (
	"maps"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// waitForCapacity schedules a retry for a node whose peer lacks capacity; false means that the
// failure is an ordinary one. The effect chose the pause, including jitter, and node.retried
// records it. A dispatcher that takes the run over waits until the same instant, and a replay
// repeats the event. The node waits only if its workflow allows it, and within the time limits of
// the run and the attempt.
func (m *Machine) waitForCapacity(now time.Time, id string, e *wire.NodeError, trust wire.Trust) bool {
	n, pause := m.st.Nodes[id], max(e.RetryAfter, time.Millisecond)
	if !e.Capacity || !e.Retryable || !m.step(id).Node.WaitsForCapacity() || !m.isBeforeDeadline(now.Add(pause)) {
		return false
	}
	if left := n.TimeLeft(now); left > 0 && left <= pause.Milliseconds() {
		return false
	}
	m.emitSpared(now, id, e, trust, pause, map[string]any{"reason": runstate.NoCapacity})
	return true
}

// callNextModel begins an attempt with the next model of the node's onError.models; false if there is
// none. The effect chose it, and node.retried records it: a dispatcher that takes the run over calls
// the same one, and a replay repeats the event.
func (m *Machine) callNextModel(now time.Time, id string, e *wire.NodeError, trust wire.Trust) bool {
	if e.Next == nil || !m.isBeforeDeadline(now.Add(time.Millisecond)) {
		return false
	}
	m.emitSpared(now, id, e, trust, time.Millisecond, map[string]any{"reason": runstate.ModelFailed, "next": e.Next})
	return true
}

// nextModel returns the model that a node calls because its own failed; nil for its own.
func (m *Machine) nextModel(id string) *wire.NextModel {
	if n := m.st.Nodes[id]; n != nil {
		return n.Next
	}
	return nil
}

// emitSpared emits node.retried before an attempt that uses up no retry. details are added to those
// of the error.
func (m *Machine) emitSpared(now time.Time, id string, e *wire.NodeError, trust wire.Trust, pause time.Duration, details map[string]any) {
	recorded := *e
	recorded.Details = maps.Clone(e.Details)
	if recorded.Details == nil {
		recorded.Details = map[string]any{}
	}
	maps.Copy(recorded.Details, details)
	m.emitData(now, wire.EventNodeRetried, id, trust, retriedPayload{
		NodeID: id, Attempt: m.st.Nodes[id].Attempt + 1, DelayMs: max(pause.Milliseconds(), 1), LastError: &recorded,
	})
	delete(m.handedOut, id)
}

// attemptTimeout is the time limit of an attempt that starts now, in milliseconds; 0 means no
// limit. Waits for capacity count against it. A replay does not wait, so it uses the recorded limit
// of its source.
func (m *Machine) attemptTimeout(now time.Time, id string, attempt int) int64 {
	limit := m.step(id).Node.Timeout().Milliseconds()
	n := m.st.Nodes[id]
	if limit <= 0 || n == nil || n.Waits == 0 || n.Status != runstate.NodeRetrying || n.TimeoutMs <= 0 {
		return limit
	}
	if ms, ok := m.env.recordedTimeout(id, attempt); ok {
		return ms
	}
	return min(n.TimeLeft(now), limit)
}
