package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Spawn is the run that a node starts.
type Spawn struct {
	RunID  string
	Config node.SubWorkflow
	// Inputs are the variables for the child. Unset are the names that the parent has no value for.
	Inputs map[string]json.RawMessage
	Unset  []string
	// Trust is the meet of all sources of the child.
	Trust wire.Trust
}

// idEncoding is the encoding of run ids.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// childBytes is the length of the hash in an id.
const childBytes = 16

// ChildID is the id of a node's nth child. It depends only on values that the log has before the
// child exists, so that a repeated start finds the first child.
func ChildID(parent *wire.RunRecord, nodeID string, nth int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "waybill:child\x00%s\x00%s\x00%s\x00%d",
		parent.Owner.Tenant, parent.RunID, nodeID, nth))
	return "run_" + idEncoding.EncodeToString(sum[:childBytes])
}

// ExpectedChild is the id of the run that a started node starts, or has started. there reports that
// the log records it. A child in the copied history of a fork belongs to the source.
func ExpectedChild(st *runstate.State, nodeID string) (id string, there bool) {
	nth, last := 0, ""
	for _, c := range st.Children {
		if c.NodeID != nodeID {
			continue
		}
		if own := ChildID(st.Record, nodeID, nth); c.RunID == own {
			nth, last = nth+1, own
		}
	}
	if n := st.Nodes[nodeID]; n != nil && n.Child != nil && n.Child.RunID == last {
		return last, true
	}
	return ChildID(st.Record, nodeID, nth), false
}

// spawnOf returns the child of a subworkflow node; nil for other nodes.
func (m *Machine) spawnOf(id string, t node.Type, in node.Input, trust wire.Trust) *Spawn {
	if t.Class != node.Spawns {
		return nil
	}
	c, bad := node.ParseSubWorkflow(in.Config)
	if bad != nil {
		return nil // startNode failed such a node
	}
	child, _ := ExpectedChild(m.st, id)
	s := &Spawn{RunID: child, Config: c, Inputs: map[string]json.RawMessage{}, Trust: trust}
	variables := m.visibleVariables(m.step(id).Node)
	for to, from := range c.Inputs {
		if v, ok := variables[from]; ok {
			s.Inputs[to] = v
			s.Trust = s.Trust.Meet(trustOf(m.st.Tainted[from]))
		} else {
			s.Unset = append(s.Unset, to)
		}
	}
	return s
}

type dispatchedPayload struct {
	ChildRunID      string `json:"childRunId"`
	ChildWorkflowID string `json:"childWorkflowId"`
}

// RecordDispatch records that a node's child exists. It completes a node that does not wait for its
// child.
func (m *Machine) RecordDispatch(now time.Time, id string, s Spawn) {
	n := m.st.Nodes[id]
	if n == nil || n.Status != runstate.NodeRunning {
		return // too late
	}
	if child, there := ExpectedChild(m.st, id); there || child != s.RunID {
		return // another session recorded it
	}
	m.emitDispatched(now, id, s.RunID, s.Config.WorkflowID)
	if !s.Config.Wait {
		m.emitCompletion(now, id, childOutput(s.RunID, wire.StatusPending), m.nodeTrust(id))
	}
}

func (m *Machine) emitDispatched(now time.Time, id, childID, workflowID string) {
	m.emitFact(now, wire.EventNodeDispatched, id, dispatchedPayload{ChildRunID: childID, ChildWorkflowID: workflowID})
	delete(m.handedOut, id)
}

func childOutput(childID string, status wire.Status) node.Output {
	return node.Output{Ports: map[string]json.RawMessage{
		"childRunId": wire.AppendString(nil, childID), "childStatus": wire.AppendString(nil, string(status)),
	}}
}

// Report is a child's report to its parent.
type Report struct {
	RunID, WorkflowID string
	Status            wire.Status
	// Wait is what a suspended child waits for.
	Wait      *runstate.Wait
	Error     *wire.NodeError
	Variables map[string]json.RawMessage
	Tainted   map[string]bool
	// Trust is the meet of the child's inputs and its nodes.
	Trust wire.Trust
}

// ReportOf returns the report of a run.
func ReportOf(st *runstate.State) Report {
	r := Report{
		RunID: st.Record.RunID, WorkflowID: st.Record.WorkflowID, Status: st.Status, Error: st.Error,
		Variables: st.Variables, Tainted: st.Tainted, Trust: wire.Trusted.Meet(st.Record.TrustBoundary),
	}
	if st.Status.Suspended() {
		r.Wait = st.Waits()
	}
	for _, n := range st.Nodes {
		r.Trust = r.Trust.Meet(n.Trust)
	}
	return r
}

// AsTooLarge returns the report of a failure, for a child whose report exceeds a limit of its
// parent's log.
func (r Report) AsTooLarge() Report {
	r.Variables, r.Tainted = nil, nil
	if r.Status.Terminal() {
		r.Status, r.Error = wire.StatusFailed, EventsTooLarge()
	}
	return r
}

// ApplyReport applies a child's report; false means that it changes nothing. A paused run ignores
// it: the next session reads the child again.
func (m *Machine) ApplyReport(now time.Time, id string, r Report) bool {
	n := m.st.Nodes[id]
	if n == nil || !m.isLive() || n.Status != runstate.NodeRunning && n.Status != runstate.NodeSuspended {
		return false
	}
	child, there := ExpectedChild(m.st, id)
	if m.plan.Types[n.TypeID].Class != node.Spawns || child != r.RunID {
		return false
	}
	c, bad := node.ParseSubWorkflow(m.plan.Types[n.TypeID].Configure(m.step(id).Node.Config))
	if bad != nil {
		return false
	}
	before := len(m.pending.events)
	if !there { // the report was faster than the recording of the start
		m.emitDispatched(now, id, r.RunID, r.WorkflowID)
	}
	if n.Status == runstate.NodeSuspended && (r.Wait == nil || r.Wait.InterruptID != n.Child.InterruptID) {
		m.emitFact(now, wire.EventNodeResumed, id, mirrorPayload{NodeID: id, InterruptID: n.Child.InterruptID})
	}
	switch {
	case r.Status.Terminal():
		m.endChildNode(now, id, c, r)
	case r.Wait != nil && n.Status == runstate.NodeRunning:
		m.emitFact(now, wire.EventNodeSuspended, id, mirrorPayload{
			NodeID: id, InterruptID: r.Wait.InterruptID, Kind: r.Wait.Kind,
		})
	}
	return len(m.pending.events) > before
}

// WakeAfterReport makes the frame of a report enqueue the run: to continue after the child's end,
// or to report to its own parent.
func (m *Machine) WakeAfterReport(r Report) {
	m.pending.wake = m.pending.wake || r.Status.Terminal() || m.st.Record.Parent != nil
}

// mirrorPayload records at the parent that its child waits, or continues.
type mirrorPayload struct {
	NodeID      string         `json:"nodeId"`
	InterruptID string         `json:"interruptId"`
	Kind        interrupt.Kind `json:"kind,omitempty"`
}

// endChildNode ends the node of a child that ended.
func (m *Machine) endChildNode(now time.Time, id string, c node.SubWorkflow, r Report) {
	if r.Status != wire.StatusCompleted && !c.Absorb {
		m.FailNode(now, id, childFailure(r), r.Trust)
		return
	}
	out, trust := childOutput(r.RunID, r.Status), r.Trust
	if r.Status == wire.StatusCompleted {
		out.Writes = map[string]json.RawMessage{}
		for to, from := range c.Outputs {
			if v, ok := r.Variables[from]; ok {
				out.Writes[to] = v
				trust = trust.Meet(trustOf(r.Tainted[from]))
			}
		}
	}
	m.Complete(now, id, out, trust)
}

// childFailure names the child and the code of its error. The message is in the child's log.
func childFailure(r Report) *wire.NodeError {
	e := &wire.NodeError{
		Code:    string(fault.ChildFailed),
		Message: fmt.Sprintf("run %s of workflow %q was cancelled", r.RunID, r.WorkflowID),
		Details: map[string]any{
			"childRunId": r.RunID, "childWorkflowId": r.WorkflowID, "childStatus": string(r.Status),
		},
	}
	if r.Status == wire.StatusFailed {
		cause := cmp.Or(r.Error, &wire.NodeError{})
		e.Message = fmt.Sprintf("run %s of workflow %q failed: %s", r.RunID, r.WorkflowID, cause.Code)
		e.Details["childErrorCode"] = cause.Code
		e.Retryable = cause.Retryable
	}
	return e
}

// cancelReason is the reason in node.cancelled. A node whose child continues has a reason of its
// own.
func (m *Machine) cancelReason(id string, n *runstate.Node, reason string) string {
	t := m.plan.Types[n.TypeID]
	if t.Class != node.Spawns {
		return reason
	}
	if c, bad := node.ParseSubWorkflow(t.Configure(m.step(id).Node.Config)); bad == nil && !c.Cascade {
		return runstate.ReasonLetBe
	}
	return reason
}

// RequestCancel records that the run ends as cancelled once its children have ended.
func (m *Machine) RequestCancel(c wire.CancelNote) { m.rememberNote(wire.Note{Cancel: &c}) }
