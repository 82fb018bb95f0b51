package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// edgeCarries reports whether an edge with a completed source is taken. Its condition, if any, is
// evaluated over the source's outputs and the variables at the time when the target is checked
// (OpenWOP host contract §5.2).
//
// A failed or skipped source has no outputs, so its condition is not evaluated. It counts by its
// status, and an edge with a condition can handle a failure, too.
func (m *Machine) edgeCarries(l workflow.Link) (bool, *wire.NodeError) {
	c := m.plan.Flow.Condition(l.Edge.ID)
	if c == nil {
		return true, nil
	}
	if held, known := m.conditions[l.Edge.ID]; known {
		return held, nil
	}
	holds, err := c.Holds(m.st.Nodes[l.Edge.SourceNodeID].Outputs, m.visibleVariables(m.step(l.Edge.TargetNodeID).Node))
	if err != nil {
		return false, node.Invalid("the condition of edge %s: %s", l.Edge.ID, err)
	}
	if reads := c.Reads(); !reads.All && len(reads.Names) == 0 {
		m.conditions[l.Edge.ID] = holds // the result depends on outputs only, which do not change
	}
	return holds, nil
}

// steeringTrust is the meet of the variables that the conditions of a node's edges and the
// expressions of its ports read. They decide whether the node runs, and with which values.
func (m *Machine) steeringTrust(step *workflow.Step) wire.Trust {
	trust := wire.Trusted
	for _, l := range step.In {
		trust = trust.Meet(m.taintOf(m.plan.Flow.Condition(l.Edge.ID).Reads()))
	}
	for port, pv := range step.Node.Inputs {
		if pv.Type == workflow.PortExpression {
			trust = trust.Meet(m.expressionTrust(step.Node.ID, port, nil))
		}
	}
	return trust
}

// taintOf is untrusted if any of the read variables is.
func (m *Machine) taintOf(read expr.Members) wire.Trust {
	for name, tainted := range m.st.Tainted {
		if tainted && read.Has(name) {
			return wire.Untrusted
		}
	}
	return wire.Trusted
}

// expressionTrust is the meet of all values that the expression of a port can read.
func (m *Machine) expressionTrust(id, port string, taintedInputs map[string]bool) wire.Trust {
	p, err := m.plan.Flow.Port(id, port)
	if err != nil {
		return wire.Trusted // such an expression has no value
	}
	reads := p.Reads()
	trust := m.taintOf(reads["variables"])
	for name := range taintedInputs {
		if reads["inputs"].Has(name) {
			trust = wire.Untrusted
		}
	}
	for other, n := range m.st.Nodes {
		if reads["nodes"].Has(other) {
			trust = trust.Meet(n.Trust)
		}
	}
	return trust
}

// evalExpression evaluates a port's expression over the node's edges, the variables and the outputs
// of completed nodes.
func (m *Machine) evalExpression(
	id, port string, edges map[string]json.RawMessage, tainted map[string]bool,
) (json.RawMessage, wire.Trust, *wire.NodeError) {
	p, err := m.plan.Flow.Port(id, port)
	if err != nil {
		return nil, wire.Trusted, node.Invalid("node %s, port %s: %s", id, port, err)
	}
	trust := m.expressionTrust(id, port, tainted)
	outputs := map[string]expr.Object{}
	for other, n := range m.st.Nodes {
		if n.Status == runstate.NodeCompleted {
			outputs[other] = n.Outputs
		}
	}
	v, _, err := p.Eval(expr.NewValues(map[string]expr.Object{
		"inputs": edges, "variables": m.visibleVariables(m.step(id).Node),
	}, outputs, p))
	if err != nil {
		return nil, trust, node.Invalid("node %s, port %s: %s", id, port, err)
	}
	return v, trust, nil
}

// hasExpression reports whether a port of the node is an expression.
func hasExpression(n *workflow.Node) bool {
	for _, pv := range n.Inputs {
		if pv.Type == workflow.PortExpression {
			return true
		}
	}
	return false
}

// edgePorts returns copies of the edges' values, before the node's own ports overlay them; nil if
// no expression reads them.
func edgePorts(
	n *workflow.Node, ports map[string]json.RawMessage, tainted map[string]bool,
) (map[string]json.RawMessage, map[string]bool) {
	if !hasExpression(n) {
		return nil, nil
	}
	return maps.Clone(ports), maps.Clone(tainted)
}

// emitLoopBreach reports a loop that exceeds its limit, before its node fails (OpenWOP host
// contract §3.4).
func (m *Machine) emitLoopBreach(now time.Time, id string, l *node.Loop) {
	if l == nil {
		return
	}
	m.emitFact(now, wire.EventLoopbackLimit, id, loopPayload{NodeID: id, Iterations: l.Observed, Limit: l.Limit})
	m.emitFact(now, wire.EventCapBreached, id, capPayload{
		Kind: "loop-iterations", Limit: l.Limit, Observed: l.Observed, NodeID: id,
	})
}

type loopPayload struct {
	NodeID     string `json:"nodeId"`
	Iterations int64  `json:"iterations"`
	Limit      int64  `json:"limit"`
}

// enforceAttemptTimeout fails an attempt that exceeded its time limit; false if it has not. The log
// has the start and the limit, so another dispatcher ends it at the same instant.
func (m *Machine) enforceAttemptTimeout(now time.Time, id string, n *runstate.Node) bool {
	if n.Status != runstate.NodeRunning || n.DelayMs > 0 || n.TimeoutMs <= 0 {
		return false
	}
	m.FailNode(now, id, &wire.NodeError{
		Code:      string(fault.NodeTimeout),
		Message:   fmt.Sprintf("the attempt did not end within %d ms, the node's timeoutMs", n.TimeoutMs),
		Retryable: true,
	}, m.nodeTrust(id))
	return true
}

// IsCurrent reports whether the run still waits for an attempt of an effect: it has not timed out,
// and the node has not ended otherwise.
func (m *Machine) IsCurrent(e Effect) bool {
	n := m.st.Nodes[e.NodeID]
	return m.isLive() && n != nil && n.Status == runstate.NodeRunning && n.Attempt == e.Attempt
}
