package runstate

import (
	"cmp"
	"encoding/json"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

// Child is a run that a node started, as recorded in the parent's log.
type Child struct {
	RunID      string
	WorkflowID string
	NodeID     string
	Status     wire.Status
	// InterruptID and Kind identify what the child waits for; empty if it does not wait.
	InterruptID string
	Kind        interrupt.Kind
	// Cut: the node was cancelled while it waited for the child.
	Cut bool
}

// ReasonLetBe is the reason of a cancelled node whose child continues.
const ReasonLetBe = "cancelled, its child run goes on"

// ChildRun is one entry of a snapshot's childRuns.
type ChildRun struct {
	RunID      string      `json:"runId"`
	Status     wire.Status `json:"status"`
	WorkflowID string      `json:"workflowId"`
	NodeID     string      `json:"nodeId"`
}

// Wait describes what a suspended run waits for.
type Wait struct {
	NodeID      string
	InterruptID string
	Kind        interrupt.Kind
	since       string
}

// Waits returns the longest open wait: for an answer of the run's own, or one of a child's; nil if there is
// none.
func (s *State) Waits() *Wait {
	var first *Wait
	if i := s.firstOpen(); i != nil {
		first = &Wait{NodeID: i.NodeID, InterruptID: i.InterruptID, Kind: i.Kind, since: i.RequestedAt}
	}
	for _, c := range s.Children {
		n := s.Nodes[c.NodeID]
		if n == nil || n.Child != c || n.Status != NodeSuspended {
			continue
		}
		if first == nil || n.Since < first.since {
			first = &Wait{NodeID: c.NodeID, InterruptID: c.InterruptID, Kind: c.Kind, since: n.Since}
		}
	}
	return first
}

// childPayload is the union of the payload members about children.
type childPayload struct {
	ChildRunID      string         `json:"childRunId"`
	ChildWorkflowID string         `json:"childWorkflowId"`
	ChildStatus     wire.Status    `json:"childStatus"`
	InterruptID     string         `json:"interruptId"`
	Kind            interrupt.Kind `json:"kind"`
	Reason          string         `json:"reason"`
	Outputs         struct {
		ChildStatus wire.Status `json:"childStatus"`
	} `json:"outputs"`
	Error     childError `json:"error"`
	LastError childError `json:"lastError"`
}

type childError struct {
	Details struct {
		ChildStatus wire.Status `json:"childStatus"`
	} `json:"details"`
}

// applyChild folds an event about a child.
func (s *State) applyChild(e wire.Event, nodeID string) {
	if nodeID == "" || !concernsChild(e.Type) {
		return
	}
	n := s.node(nodeID)
	if n.Child == nil && e.Type != wire.EventNodeDispatched {
		return
	}
	var p childPayload
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload counts as an empty one
	if e.Type == wire.EventNodeDispatched {
		n.Child = &Child{RunID: p.ChildRunID, WorkflowID: p.ChildWorkflowID, NodeID: nodeID, Status: cmp.Or(p.ChildStatus, wire.StatusRunning)}
		s.Children = append(s.Children, n.Child)
		return
	}
	n.Child.apply(e.Type, p)
}

func (c *Child) apply(t wire.EventType, p childPayload) {
	c.InterruptID, c.Kind = "", ""
	switch t {
	case wire.EventNodeSuspended:
		c.Status, c.InterruptID, c.Kind = p.Kind.Status(), p.InterruptID, p.Kind
	case wire.EventNodeResumed:
		c.Status = wire.StatusRunning
	case wire.EventNodeCompleted:
		c.Status = cmp.Or(p.Outputs.ChildStatus, c.Status)
	case wire.EventNodeFailed:
		c.Status = cmp.Or(p.Error.Details.ChildStatus, c.Status)
	case wire.EventNodeRetried:
		c.Status = cmp.Or(p.LastError.Details.ChildStatus, c.Status)
	case wire.EventNodeCancelled:
		if p.Reason != ReasonLetBe {
			c.Status, c.Cut = wire.StatusCancelled, true
		}
	}
}

func concernsChild(t wire.EventType) bool {
	switch t {
	case wire.EventNodeDispatched, wire.EventNodeSuspended, wire.EventNodeResumed, wire.EventNodeCompleted,
		wire.EventNodeFailed, wire.EventNodeRetried, wire.EventNodeCancelled:
		return true
	default:
		return false
	}
}

// addRelatives adds the run's parent and children to a snapshot.
func (s *State) addRelatives(v *Snapshot) {
	if p := s.Record.Parent; p != nil {
		v.ParentRunID, v.ParentNodeID = p.RunID, p.NodeID
	}
	for _, c := range s.Children {
		v.ChildRuns = append(v.ChildRuns, ChildRun{RunID: c.RunID, Status: c.Status, WorkflowID: c.WorkflowID, NodeID: c.NodeID})
	}
}
