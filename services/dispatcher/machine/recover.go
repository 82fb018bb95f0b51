package machine

import (
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// recoverNodes handles the effects that a lost executor had begun and whose result is not in the
// log. Each node follows its policy for unknown outcomes. A node whose answer is in the log keeps
// its attempt, and with it the ids of the answer. A node whose effect is held continues: nothing
// was sent. A node whose type is missing fails.
func (x *execution) recoverNodes(now time.Time) {
	if x.recovered || x.st.Status != wire.StatusRunning {
		return
	}
	x.recovered = true
	before := len(x.pending.events)
	for _, step := range x.plan.Graph.Steps {
		id := step.Node.ID
		n := x.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning {
			continue
		}
		t, known := x.plan.Types[n.TypeID]
		if !known {
			x.failNode(now, id, unsupportedType(n.TypeID), n.Attempt, wire.Trusted)
			continue
		}
		if t.Class == node.Effect && x.isOutcomeUnknown(id, n) {
			x.settleUnknown(now, id, n, t)
		}
	}
	x.pending.recovery = len(x.pending.events) > before
}

// isOutcomeUnknown reports whether a lost executor may have sent a running effect.
func (m *Machine) isOutcomeUnknown(id string, n *runstate.Node) bool {
	return !m.handedOut[id] && m.mayBeSent(id, n)
}

// mayBeSent reports whether the call of a running effect may have been sent, and has no answer.
func (m *Machine) mayBeSent(id string, n *runstate.Node) bool {
	if m.hasAnswer(id) || m.st.Open(id) != nil {
		return false
	}
	return !n.Held || n.Chunked // a fork has the first chunks of its source
}

// CutCalls returns the nodes whose calls were cut, with the policies that the next executor applies.
func (m *Machine) CutCalls() map[string]workflow.UnknownOutcome {
	cut := map[string]workflow.UnknownOutcome{}
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		t, n := m.plan.Types[step.Node.TypeID], m.st.Nodes[id]
		if n != nil && n.Status == runstate.NodeRunning && t.Class == node.Effect && m.mayBeSent(id, n) {
			cut[id] = t.OnUnknownOutcome(step.Node)
		}
	}
	return cut
}

// settleUnknown applies the policy of a node whose outcome is unknown.
func (m *Machine) settleUnknown(now time.Time, id string, n *runstate.Node, t node.Type) {
	policy := t.OnUnknownOutcome(m.step(id).Node)
	switch {
	case n.Held:
		m.startBranched(now, id, n)
	case policy == workflow.OutcomeRetry && n.TimeoutMs > 0 && n.DelayMs == 0 && !now.Before(n.Due()):
		// The attempt fails with node_timeout, and only its own retries repeat it.
	case policy == workflow.OutcomeRetry:
		m.repeatCall(now, id, n, t)
	case policy == workflow.OutcomeAsk:
		m.askUnknown(now, id, n, t)
	default:
		m.failNode(now, id, m.unknownOutcome(id, n, t), n.Attempt, m.nodeTrust(id))
	}
}

// repeatCall sends the call of a node again, and records that. Usually a new attempt starts, which
// uses none of the node's retries. An emission with recorded rounds keeps its attempt: completed
// rounds are not repeated (OpenWOP envelope contract §14.3).
func (m *Machine) repeatCall(now time.Time, id string, n *runstate.Node, t node.Type) {
	lost := m.unknownOutcome(id, n, t)
	if !n.Chunked && (n.Rounds > 0 || len(n.Retries) > 0) {
		m.emitData(now, wire.EventLogAppended, id, wire.Trusted, repeatedPayload{
			Level:   "warn",
			Message: "the call in flight is sent again: " + lost.Message,
			NodeID:  id,
			Fields:  lost.Details,
		})
		return
	}
	lost.Retryable = true
	next := n.Attempt + 1
	m.emitData(now, wire.EventNodeRetried, id, wire.Trusted, retriedPayload{NodeID: id, Attempt: next, LastError: lost})
	m.startNode(now, id, next)
}

// startBranched starts a node of a branch again whose attempt the copied history contains in part:
// what a model writes now does not continue the copied chunks. Nothing failed, and the new attempt
// uses none of the node's retries.
func (m *Machine) startBranched(now time.Time, id string, n *runstate.Node) {
	next := n.Attempt + 1
	m.emitData(now, wire.EventNodeRetried, id, wire.Trusted, retriedPayload{
		NodeID: id, Attempt: next, Reason: runstate.Branched,
	})
	m.startNode(now, id, next)
}

type repeatedPayload struct {
	Level   string         `json:"level"`
	Message string         `json:"message"`
	NodeID  string         `json:"nodeId"`
	Fields  map[string]any `json:"fields"`
}

// unsupportedType is the error of a node whose type this host lacks. Creation rejects such
// workflows, but a definition can outlive a pack.
func unsupportedType(typeID string) *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.UnsupportedNodeType),
		Message: fmt.Sprintf("node type %q is not registered on this host", typeID),
	}
}

func (m *Machine) hasAnswer(nodeID string) bool {
	for _, v := range m.st.Envelopes {
		if v.NodeID == nodeID && v.Payload != nil && !v.Logged && v.Sequence >= m.st.Record.Copied() {
			return true
		}
	}
	return false
}

// Contract is the envelope contract of a node's instance, else of its type; nil when
// neither declares one.
func (m *Machine) Contract(nodeID string) *workflow.EnvelopeContract {
	c, err := m.step(nodeID).Node.Contract()
	if made := m.plan.Types[m.step(nodeID).Node.TypeID].Made; err == nil && c == nil && made != nil {
		return made.Contract
	}
	if err != nil {
		return &workflow.EnvelopeContract{} // registered before contracts were checked: only the universal kinds
	}
	return c
}
