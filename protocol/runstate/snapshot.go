package runstate

import (
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

// Snapshot is the RunSnapshot document (run-snapshot.schema.json). engineVersion is omitted,
// because the schema and a later correction disagree about its type (OpenWOP host contract §12 no.
// 15).
type Snapshot struct {
	RunID         string                     `json:"runId"`
	WorkflowID    string                     `json:"workflowId"`
	Status        wire.Status                `json:"status"`
	Owner         wire.Owner                 `json:"owner"`
	CurrentNodeID string                     `json:"currentNodeId,omitempty"`
	CreatedAt     string                     `json:"createdAt,omitempty"`
	StartedAt     string                     `json:"startedAt,omitempty"`
	CompletedAt   string                     `json:"completedAt,omitempty"`
	Inputs        map[string]json.RawMessage `json:"inputs"`
	Variables     map[string]json.RawMessage `json:"variables"`
	// Channels is nil if the workflow has none.
	Channels     map[string]json.RawMessage `json:"channels,omitempty"`
	NodeStates   map[string]NodeState       `json:"nodeStates"`
	Outputs      json.RawMessage            `json:"outputs,omitempty"`
	Error        *SnapshotError             `json:"error,omitempty"`
	Tags         []string                   `json:"tags,omitempty"`
	Metadata     json.RawMessage            `json:"metadata,omitempty"`
	Configurable json.RawMessage            `json:"configurable,omitempty"`
	Metrics      *Metrics                   `json:"metrics,omitempty"`
	Interrupt    *OpenInterrupt             `json:"interrupt,omitempty"`
	ParentRunID  string                     `json:"parentRunId,omitempty"`
	ParentNodeID string                     `json:"parentNodeId,omitempty"`
	// SourceRunID is an extension: the source of a fork.
	SourceRunID string `json:"sourceRunId,omitempty"`
	// Fork is an extension: mode and starting point of a fork.
	Fork      *SnapshotFork `json:"fork,omitempty"`
	ChildRuns []ChildRun    `json:"childRuns,omitempty"`
	EventLog  int           `json:"eventLogSchemaVersion"`
}

// SnapshotFork describes how a fork was made.
type SnapshotFork struct {
	SourceRunID string        `json:"sourceRunId"`
	Mode        wire.ForkMode `json:"mode"`
	FromSeq     int           `json:"fromSeq"`
	// Edits are the edited nodes of the fork, and of the forks that it was made from.
	Edits []SnapshotEdit `json:"edits,omitempty"`
	// Only names the only node of the run; empty if it executes the whole workflow.
	Only string `json:"only,omitempty"`
}

// SnapshotEdit describes what a fork executes differently from its source.
type SnapshotEdit struct {
	NodeID string `json:"nodeId"`
	// Config is the node's config, if the fork has another one.
	Config json.RawMessage `json:"config,omitempty"`
	// Inputs are the ports whose values were set. Outputs means that the node's outputs were.
	Inputs  []string `json:"inputs,omitempty"`
	Outputs bool     `json:"outputs,omitempty"`
}

func snapshotFork(f *wire.Fork) *SnapshotFork {
	out := &SnapshotFork{SourceRunID: f.SourceRunID, Mode: f.Mode, FromSeq: f.FromSeq}
	if f.Edited == nil {
		return out
	}
	out.Only = f.Edited.Only
	for _, e := range f.Edited.Nodes {
		out.Edits = append(out.Edits, SnapshotEdit{
			NodeID: e.NodeID, Config: e.Config, Inputs: slices.Sorted(maps.Keys(e.Inputs)), Outputs: e.Outputs != nil,
		})
	}
	return out
}

// OpenInterrupt is the interrupt the run waits for; the oldest if there are several.
type OpenInterrupt struct {
	Kind        interrupt.Kind    `json:"kind"`
	NodeID      string            `json:"nodeId"`
	InterruptID string            `json:"interruptId"`
	Payload     interrupt.Request `json:"payload"`
	RequestedAt string            `json:"requestedAt"`
	CallbackURL string            `json:"callbackUrl,omitempty"`
	// Escalation is an extension: the level that the interrupt has reached.
	Escalation *interrupt.Escalation `json:"escalation,omitempty"`
}

// Shown returns an interrupt in the form of snapshots.
func (s *State) Shown(i *Interrupt) *OpenInterrupt {
	return &OpenInterrupt{
		Kind: i.Kind, NodeID: i.NodeID, InterruptID: i.InterruptID, Payload: i.Request, RequestedAt: i.RequestedAt,
		CallbackURL: s.Record.CallbackURL, Escalation: i.Escalated,
	}
}

// NodeState is one entry of a snapshot's nodeStates.
type NodeState struct {
	Status   NodeStatus                 `json:"status"`
	TypeID   string                     `json:"typeId,omitempty"`
	Attempts int                        `json:"attempts,omitempty"`
	Outputs  map[string]json.RawMessage `json:"outputs,omitempty"`
	Error    *SnapshotError             `json:"error,omitempty"`
	Since    string                     `json:"since,omitempty"`
}

// SnapshotError is the closed error of a snapshot: no retryable member.
type SnapshotError struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Metrics holds the cost roll-up; absent, not zero, without a model call.
type Metrics struct {
	Cost CostRollup `json:"openwopCost"`
}

// CostRollup is the member openwopCost of a snapshot.
type CostRollup struct {
	USD      *float64   `json:"usd,omitempty"`
	Tokens   CostTokens `json:"tokens"`
	Model    string     `json:"model,omitempty"`
	Provider string     `json:"provider,omitempty"`
}

// CostTokens sums the tokens of a run's model calls.
type CostTokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Snapshot returns the snapshot document.
func (s *State) Snapshot() *Snapshot {
	r := s.Record
	v := &Snapshot{
		RunID: r.RunID, WorkflowID: r.WorkflowID, Status: s.Status, Owner: r.Owner,
		CreatedAt: r.CreatedAt, StartedAt: s.StartedAt, CompletedAt: s.CompletedAt,
		Inputs: orEmpty(r.Inputs), Variables: orEmpty(s.Variables), NodeStates: map[string]NodeState{},
		Outputs: s.Outputs, Error: snapshotError(s.Error), Tags: r.Tags, Metadata: r.Metadata,
		Configurable: r.Configurable, EventLog: wire.EventLogSchemaVersion,
	}
	v.Channels = s.channels()
	if r.Fork != nil {
		v.SourceRunID = r.Fork.SourceRunID
		v.Fork = snapshotFork(r.Fork)
	}
	for id, n := range s.Nodes {
		v.NodeStates[id] = NodeState{
			Status: n.Status, TypeID: n.TypeID, Attempts: attempts(n), Outputs: n.Outputs,
			Error: snapshotError(n.Error), Since: n.Since,
		}
	}
	if w := s.Waits(); w != nil && s.Status.Suspended() {
		v.CurrentNodeID = w.NodeID
	}
	s.addRelatives(v)
	if i := s.firstOpen(); i != nil && s.Status.Suspended() {
		v.Interrupt = s.Shown(i)
	}
	if c := s.Cost; c.Calls+c.Others > 0 {
		v.Metrics = &Metrics{Cost: CostRollup{
			Tokens: CostTokens{Input: c.InputTokens, Output: c.OutputTokens}, Model: c.Model, Provider: c.Provider,
		}}
		if c.PricedCalls > 0 {
			v.Metrics.Cost.USD = &c.USD
		}
	}
	return v
}

// SnapshotJSON returns the rendered snapshot. It cannot fail, because every open member is already
// JSON.
func (s *State) SnapshotJSON() []byte {
	b, err := json.Marshal(s.Snapshot())
	if err != nil { // a damaged raw member: keep the members that identify the run
		b, _ = json.Marshal(&Snapshot{
			RunID: s.Record.RunID, WorkflowID: s.Record.WorkflowID, Status: s.Status, Owner: s.Record.Owner,
			EventLog: wire.EventLogSchemaVersion,
		})
	}
	return b
}

func attempts(n *Node) int {
	if n.Status == NodeSkipped {
		return 0
	}
	return n.Attempt + 1
}

func snapshotError(e *wire.NodeError) *SnapshotError {
	if e == nil {
		return nil
	}
	return &SnapshotError{Code: e.Code, Message: e.Message, Details: e.Details}
}

func orEmpty(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}
