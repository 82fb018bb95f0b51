package run

import (
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// recoverNodes looks after effects whose executor was lost. One that had shown
// partial output is started as a fresh attempt, so that a reader of the stream
// sees where the text begins again, and takes no retry; any other goes on unseen. A node whose
// answer is in the log keeps its attempt, and with it the answer's ids. One whose
// type this host no longer has fails: nobody could carry it on.
func (m *Machine) recoverNodes(now time.Time) {
	if m.recovered || m.st.Status != wire.StatusRunning {
		return
	}
	m.recovered = true
	before := len(m.pending)
	defer func() { m.recovering = len(m.pending) > before }()
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning {
			continue
		}
		t, known := m.plan.Types[n.TypeID]
		if !known {
			m.failNode(now, id, unsupported(n.TypeID), n.Attempt, wire.Trusted)
			continue
		}
		if t.Class != node.Effect || !n.Chunked || m.hasAnswer(id) {
			continue
		}
		next := n.Attempt + 1
		m.fact(now, wire.EventNodeRetried, id, retriedPayload{NodeID: id, Attempt: next, LastError: &wire.NodeError{
			Code: string(fault.InternalError), Message: "the executor was lost while the node was running", Retryable: true,
			Details: map[string]any{"reason": runstate.ExecutorLost},
		}})
		m.startNode(now, id, next)
	}
}

// unsupported is the failure of a node whose type this host does not have. Creation
// refuses such workflows; a definition can outlive a pack.
func unsupported(typeID string) *wire.NodeError {
	return &wire.NodeError{
		Code: string(fault.UnsupportedNodeType), Message: fmt.Sprintf("node type %q is not registered on this host", typeID),
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
		return &workflow.EnvelopeContract{} // registered before contracts were checked: the universal kinds only
	}
	return c
}
