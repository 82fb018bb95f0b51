package machine

import (
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// unknownCall describes the call of a running node. A model call has no key here, because its key
// depends on the model.
func (m *Machine) unknownCall(id string, n *runstate.Node, t node.Type) interrupt.UnknownCall {
	c := interrupt.UnknownCall{TypeID: n.TypeID, Attempt: n.Attempt, Since: n.Since}
	if c.Peer = node.Peer(t.Executes(), t.Configure(m.step(id).Node.Config)); c.Peer != "" {
		r := m.st.Record
		c.IdempotencyKey = node.InvocationID(r.Owner.Tenant, r.RunID, id, 0, c.Peer)
	}
	return c
}

// unknownOutcome is the error of a call whose outcome is unknown.
func (m *Machine) unknownOutcome(id string, n *runstate.Node, t node.Type) *wire.NodeError {
	c := m.unknownCall(id, n, t)
	details := map[string]any{
		"reason":  runstate.ExecutorLost,
		"typeId":  c.TypeID,
		"attempt": c.Attempt,
		"since":   c.Since,
	}
	if c.Peer != "" {
		details["peer"], details["idempotencyKey"] = c.Peer, c.IdempotencyKey
	}
	return &wire.NodeError{
		Code:    string(fault.OutcomeUnknown),
		Message: "the dispatcher stopped while the node was running; the call may have taken effect",
		Details: details,
	}
}

// askUnknown suspends a node until a person decides about its call.
func (m *Machine) askUnknown(now time.Time, id string, n *runstate.Node, t node.Type) {
	at := interrupt.Origin{RunID: m.st.Record.RunID, NodeID: id, Count: m.st.Asked(id)}
	m.openInterrupt(now, at, interrupt.Unknown(at, m.unknownCall(id, n, t), !t.AsksModel()), m.nodeTrust(id))
}

// resolveUnknown applies the decision about a call whose outcome is unknown. The node has
// resumed: its effect begins again unless the decision ends it.
func (m *Machine) resolveUnknown(now time.Time, id string, d interrupt.Decision) {
	n := m.st.Nodes[id]
	t := m.plan.Types[n.TypeID]
	switch c := interrupt.ReadChosen(d.Resume); c.Choice {
	case interrupt.ChooseRetry:
		m.holdEffect(id)
	case interrupt.ChooseResult:
		// A tool's result is never trusted.
		m.Complete(now, id, node.Output{Ports: c.Outputs}, wire.Untrusted)
	default:
		e := m.unknownOutcome(id, n, t)
		e.Message = "a person decided that the node fails: the call may have taken effect"
		m.failNode(now, id, e, n.Attempt, d.Trust)
	}
}
