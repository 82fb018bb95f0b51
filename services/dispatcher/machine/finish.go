package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Complete completes a node with its outputs. It fails the node if they do not fit its type or
// exceed a limit.
func (m *Machine) Complete(now time.Time, id string, out node.Output, trust wire.Trust) {
	if n := m.st.Nodes[id]; n == nil || n.Status != runstate.NodeRunning {
		return // too late
	}
	if bad := m.plan.Types[m.step(id).Node.TypeID].CheckOutput(out.Ports); bad != nil {
		m.failNode(now, id, bad, m.st.Nodes[id].Attempt, trust)
		return
	}
	if bad := m.checkOutputSize(m.plan.Types[m.step(id).Node.TypeID].Class, out); bad != nil {
		m.failNode(now, id, bad, m.st.Nodes[id].Attempt, trust)
		return
	}
	if bad := m.checkWrites(now, id, out); bad != nil {
		m.failNode(now, id, bad, m.st.Nodes[id].Attempt, trust)
		return
	}
	m.emitCompletion(now, id, out, trust)
}

// emitCompletion emits the node's variable changes, then node.completed.
func (m *Machine) emitCompletion(now time.Time, id string, out node.Output, trust wire.Trust) {
	m.writeChannels(now, id, out, trust)
	for _, name := range slices.Sorted(maps.Keys(out.Writes)) {
		next, prev := out.Writes[name], m.st.Variables[name]
		if string(next) == string(prev) {
			continue // unchanged
		}
		m.emitData(now, wire.EventVariableChanged, id, trust, variablePayload{
			Name: name, Previous: prev, Next: next, NodeID: id,
		})
	}
	p := nodePayload{NodeID: id, Outputs: out.Ports, Turn: out.Turn}
	if len(out.Ports) == 0 {
		m.emit(now, m.newDraft(wire.EventNodeCompleted, id, trust, p), true)
		return
	}
	m.emitData(now, wire.EventNodeCompleted, id, trust, p)
}

type variablePayload struct {
	Name     string          `json:"name"`
	Previous json.RawMessage `json:"previous,omitempty"`
	Next     json.RawMessage `json:"next"`
	NodeID   string          `json:"nodeId,omitempty"`
}

// SetVariables sets variables on request, not as a node's output. A variable that shows a channel
// cannot be set.
func (m *Machine) SetVariables(now time.Time, values map[string]json.RawMessage) *wire.NodeError {
	for name := range values {
		if bad := m.checkVariable(name); bad != nil {
			return bad
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		next, prev := values[name], m.st.Variables[name]
		if string(next) != string(prev) {
			p := variablePayload{Name: name, Previous: prev, Next: next}
			m.emitData(now, wire.EventVariableChanged, "", wire.Trusted, p)
		}
	}
	m.pending.wake = true // a waiting run keeps its timer only if it is enqueued again
	return nil
}

type failedPayload struct {
	NodeID   string          `json:"nodeId"`
	Error    *wire.NodeError `json:"error"`
	Attempts int             `json:"attempts"`
	Turn     string          `json:"turn,omitempty"`
}

// FailNode ends an attempt of an effect's node. Another attempt follows if the error is retryable,
// the policy allows a retry, and it would start before the run's deadline. The delay is the
// policy's, or the error's if that is longer. trust is that of the node's inputs.
func (m *Machine) FailNode(now time.Time, id string, e *wire.NodeError, trust wire.Trust) {
	n := m.st.Nodes[id]
	if n == nil || n.Status != runstate.NodeRunning {
		return // too late
	}
	next := n.Attempt + 1
	if m.callNextModel(now, id, e, trust) || m.waitForCapacity(now, id, e, trust) {
		return
	}
	delay := max(m.step(id).Node.Backoff(next-n.Spared), e.RetryAfter)
	if e.Retryable && int64(n.Attempt-n.Spared) < m.maxRetries(id, e) && m.isBeforeDeadline(now.Add(delay)) {
		m.emitData(now, wire.EventNodeRetried, id, trust, retriedPayload{
			NodeID: id, Attempt: next, DelayMs: delay.Milliseconds(), LastError: e,
		})
		delete(m.handedOut, id)
		return
	}
	m.failNode(now, id, e, n.Attempt, trust)
}

// isBeforeDeadline reports whether an instant is before the run's deadline.
func (m *Machine) isBeforeDeadline(at time.Time) bool {
	deadline := m.Deadline()
	return deadline.IsZero() || at.Before(deadline)
}

// maxRetries is the node's limit, else the workflow's, else that of the failed peer.
func (m *Machine) maxRetries(id string, e *wire.NodeError) int64 {
	if own, ok := m.step(id).Node.MaxRetries(); ok {
		return own
	}
	if n := m.plan.Def.Settings.MaxRetries; n > 0 {
		return n
	}
	return e.Retries
}

type retriedPayload struct {
	NodeID  string `json:"nodeId"`
	Attempt int    `json:"attempt"`
	DelayMs int64  `json:"delayMs"`
	// Reason is runstate.Branched, or empty after a failed attempt, which has an error.
	Reason    string          `json:"reason,omitempty"`
	LastError *wire.NodeError `json:"lastError,omitempty"`
}

func (m *Machine) failNode(now time.Time, id string, e *wire.NodeError, attempt int, trust wire.Trust) {
	d := m.newDraft(wire.EventNodeFailed, id, trust, failedPayload{
		NodeID: id, Error: e, Attempts: attempt + 1, Turn: e.Turn,
	})
	d.CausationID = e.CausationID
	m.emit(now, d, false)
}

// endFailed ends the run as failed.
func (m *Machine) endFailed(now time.Time, nodeID string, e *wire.NodeError) {
	trust := wire.Trusted
	if n := m.st.Nodes[nodeID]; n != nil {
		trust = n.Trust
	}
	m.emitData(now, wire.EventRunFailed, "", trust, struct {
		Error        *wire.NodeError `json:"error"`
		FailedNodeID string          `json:"failedNodeId,omitempty"`
	}{e, nodeID})
}

// Cancel ends the run as cancelled; its running nodes first.
func (m *Machine) Cancel(now time.Time, c wire.CancelNote) {
	m.cancelNodes(now, "cancelled")
	m.emitData(now, wire.EventRunCancelled, "", wire.Trusted, struct {
		Reason      string `json:"reason,omitempty"`
		CancelledBy string `json:"cancelledBy,omitempty"`
		ParentRunID string `json:"parentRunId,omitempty"`
	}{c.Reason, c.By, c.ParentRunID})
}

// cancelNodes ends the nodes that have started and not ended, in graph order.
func (m *Machine) cancelNodes(now time.Time, reason string) {
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		if n := m.st.Nodes[id]; n != nil && !n.Status.Terminal() {
			m.emitFact(now, wire.EventNodeCancelled, id, nodePayload{NodeID: id, Reason: m.cancelReason(id, n, reason)})
		}
	}
}

// finishRun ends the run once every node is done: failed if a sink failed or none
// completed, else completed (OpenWOP host contract §5.2).
func (m *Machine) finishRun(now time.Time) {
	for _, n := range m.st.Nodes {
		if !n.Status.Terminal() {
			return // a node is still running
		}
	}
	completed, failed := 0, ""
	outputs := map[string]json.RawMessage{}
	for _, i := range m.plan.Graph.Sinks {
		id := m.plan.Graph.Steps[i].Node.ID
		switch n := m.st.Nodes[id]; {
		case n == nil:
			return
		case n.Status == runstate.NodeCompleted:
			completed++
			maps.Copy(outputs, n.Outputs)
		case n.Status == runstate.NodeFailed && failed == "":
			failed = id
		}
	}
	if failed == "" && completed > 0 {
		m.completeRun(now, outputs)
		return
	}
	m.failRunBySink(now, failed)
}

// completeRun emits the outputs of the sinks, merged in graph order.
func (m *Machine) completeRun(now time.Time, outputs map[string]json.RawMessage) {
	if len(outputs) == 0 {
		m.emit(now, m.newDraft(wire.EventRunCompleted, "", m.trustOfSinks(), struct{}{}), true)
		return
	}
	m.emitData(now, wire.EventRunCompleted, "", m.trustOfSinks(), nodePayloadOutputs{outputs})
}

type nodePayloadOutputs struct {
	Outputs map[string]json.RawMessage `json:"outputs"`
}

func (m *Machine) trustOfSinks() wire.Trust {
	t := wire.Trusted
	for _, i := range m.plan.Graph.Sinks {
		t = t.Meet(m.st.Nodes[m.plan.Graph.Steps[i].Node.ID].Trust)
	}
	return t
}

// failRunBySink ends the run with the error of the failed sink, or of the first failed node if
// every sink was skipped because of it.
func (m *Machine) failRunBySink(now time.Time, failed string) {
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		if failed == "" && m.st.Nodes[id].Status == runstate.NodeFailed {
			failed = id
		}
	}
	e := &wire.NodeError{Code: "validation_error", Message: "no node of the workflow's end completed: all were skipped"}
	if failed != "" {
		e = m.st.Nodes[failed].Error
	}
	m.endFailed(now, failed, e)
}
