// Package runstate folds a run's events into its state. Dispatchers, the read model and tests share
// this fold, so that they cannot disagree.
//
// The fold is pure: the same record and events yield the same state, regardless of the clock. It
// ignores unknown event types and members, as the protocol requires of readers, and never fails.
package runstate

import (
	"encoding/json"
	"maps"
	"time"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// NodeStatus is the status of a node.
type NodeStatus string

// The statuses of a node. A node without events is absent from State.Nodes.
const (
	NodeRunning   NodeStatus = "running"
	NodeRetrying  NodeStatus = "retrying" // waits for its next attempt
	NodeSuspended NodeStatus = "suspended"
	// NodeStopped: a pause cut the attempt. Another attempt starts when the run resumes.
	NodeStopped   NodeStatus = "stopped"
	NodeCompleted NodeStatus = "completed"
	NodeFailed    NodeStatus = "failed"
	NodeSkipped   NodeStatus = "skipped"
	NodeCancelled NodeStatus = "cancelled"
)

// Terminal reports whether the node has ended.
func (s NodeStatus) Terminal() bool {
	return s == NodeCompleted || s == NodeFailed || s == NodeSkipped || s == NodeCancelled
}

// Node is the state of one node.
type Node struct {
	Status NodeStatus
	TypeID string
	// Attempt is the 0-based number of the latest attempt.
	Attempt int
	// Fallback is the model called instead of the node's own; nil if none. Its names are
	// modelgate.Withheld if the log does not record them.
	Fallback *modelgate.Model
	// Next is the model of onError.models that is called instead of the node's own, because that
	// failed; nil if none. Its names are modelgate.Withheld if the log does not record them.
	Next *wire.NextModel
	// Outputs are the ports of node.completed.
	Outputs map[string]json.RawMessage
	Error   *wire.NodeError
	// Since is the timestamp of the event that set Status. Began is the start of the first attempt;
	// empty means not started.
	Since, Began string
	// DelayMs is the time from Since until the node's timer fires; 0 means no timer.
	DelayMs int64
	// TimeoutMs is the time limit from Since of an attempt that runs or waits for capacity; 0 means
	// the
	// run's limit.
	TimeoutMs int64
	// Held: no call of the running attempt is in flight. Its effect has not begun, or waits before
	// its next call.
	Held bool
	// Chunked: the running attempt has emitted partial output since it was last held.
	Chunked bool
	// Rounds counts the model calls of the running attempt whose usage is recorded.
	Rounds int
	// Retries are the announced retries of the running attempt's emission.
	Retries []Retry
	// Prompt is the prompt of the running attempt that was recorded last; nil if none.
	Prompt *Prompt
	// Clarifications counts the node's accepted clarification requests.
	Clarifications int
	// Spared counts attempts that were cut by a pause, lost their dispatcher, or met a peer without
	// capacity. They do not count as retries.
	Spared int
	// Lost counts attempts that lost their dispatcher.
	Lost int
	// Waits counts the waits for capacity since the last other answer.
	Waits int
	// Trust is the lowest trust of the node's inputs and outputs; it never rises.
	Trust wire.Trust
	// Child is the run started by the running attempt; nil if none.
	Child *Child

	rests bool // counted in State.resting
}

// ReasonProse is the reason of the extra call that converts prose to the schema. That call is not
// an attempt, so no attempt has this reason.
const ReasonProse = "prose"

// Retry is a repeated model call for one emission, announced before it is sent.
type Retry struct {
	// Attempt is its number; the emission's first call is 1. The extra call for prose has none.
	Attempt int
	// Reason and Detail describe the error in the previous answer.
	Reason, Detail string
	// Sequence is the sequence of the event that announces it.
	Sequence int
}

// Prompt is the recorded prompt of a model call.
type Prompt struct {
	Refs []string `json:"refs"`
	Hash string   `json:"hash"`
	// Rounds is Node.Rounds at the time: the calls of the attempt before this one.
	Rounds int `json:"-"`
}

// Envelope is the recorded state of an accepted envelope.
type Envelope struct {
	NodeID   string
	EventIDs []string
	// Kind, ID and Payload are set for kinds recorded as artifacts and for Logged envelopes.
	Kind    string
	ID      string
	Payload json.RawMessage
	// Sequence is the sequence of the event that records it. Answer says which part of the model's
	// answer it is.
	Sequence int
	Answer   wire.AnswerPart
	// Hints advise how to show it.
	Hints wire.Hints
	// InterruptID is the question that a clarification.request asks.
	InterruptID string
	// Logged: log.appended records the envelope; there is no artifact.
	Logged bool
}

// State is the state of a run after its events.
type State struct {
	Record *wire.RunRecord
	Status wire.Status
	// EngineVersion is the latest engine version that has worked on the run.
	EngineVersion int
	// Next is the sequence of the next event, LastAt the timestamp of the last.
	Next        int
	LastAt      string
	StartedAt   string
	CompletedAt string
	Nodes       map[string]*Node
	Variables   map[string]json.RawMessage
	// Channels are the run's channels. A variable of the same name holds a channel's value.
	Channels map[string]*channel.State
	// Pins maps changes to the versions that the run pinned.
	Pins map[string]int
	// Tainted are the variables with untrusted values.
	Tainted map[string]bool
	Error   *wire.NodeError
	// Executions counts started attempts, including retries but excluding those that lost their
	// dispatcher.
	Executions int
	// Envelopes maps a correlationId to its recorded envelope.
	Envelopes map[string]*Envelope
	Cost      Cost
	// Outputs are the outputs of run.completed.
	Outputs json.RawMessage
	// Interrupts are the run's questions, in the order they were asked.
	Interrupts []*Interrupt
	// Pausing is set while a pause waits for nodes to end.
	Pausing *wire.PauseNote
	// PausedAt is when the current pause took effect.
	PausedAt string
	// Children are the runs started by nodes, in order.
	Children []*Child
	// Cancelling is set while a cancellation waits for children to end.
	Cancelling *wire.CancelNote

	// busy counts the active nodes, resting those of them that only wait for their delay.
	busy, resting int
	// idle is the time the run was paused or waiting, up to idleSince if that is set.
	idle      time.Duration
	idleSince string
	// rest is the time the run waited only for delays while not idle, up to restSince if that is
	// set.
	rest      time.Duration
	restSince string
}

// Cost sums the provider.usage events and the other costs that nodes report.
type Cost struct {
	Calls int
	// Others counts cost reports other than model calls.
	Others       int
	InputTokens  int64
	OutputTokens int64
	USD          float64
	PricedCalls  int
	Provider     string
	Model        string
}

// New returns the state of a run that has only its start frame.
func New(rec *wire.RunRecord) *State {
	s := &State{
		Record: rec, Status: wire.StatusPending, EngineVersion: rec.EngineVersion,
		Nodes: map[string]*Node{}, Variables: map[string]json.RawMessage{}, Envelopes: map[string]*Envelope{},
		Tainted: map[string]bool{}, Pins: map[string]int{},
	}
	if rec.TrustBoundary == wire.Untrusted {
		for name := range rec.Inputs {
			s.Tainted[name] = true
		}
	}
	if rec.Fork != nil && rec.Fork.Edited != nil {
		for _, name := range rec.Fork.Edited.UntrustedVariables {
			s.Tainted[name] = true
		}
	}
	maps.Copy(s.Variables, rec.Defaults)
	maps.Copy(s.Variables, rec.Inputs)
	s.openChannels()
	return s
}

// Fold returns the state after the events of a log.
func Fold(rec *wire.RunRecord, events []wire.Event) *State {
	s := New(rec)
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

// node returns the state of a node, created on first use.
func (s *State) node(id string) *Node {
	n := s.Nodes[id]
	if n == nil {
		n = &Node{Trust: wire.Trusted}
		s.Nodes[id] = n
	}
	return n
}

// Timer returns the node with the earliest timer of the run. ok is false if no node has one.
func (s *State) Timer() (nodeID string, n *Node, ok bool) {
	if s.Status.Terminal() || s.Status == wire.StatusPaused {
		return "", nil, false
	}
	for id, c := range s.Nodes {
		if c.wait() <= 0 || c.Status == NodeRetrying && s.Pausing != nil { // no retry starts before the pause
			continue
		}
		if n == nil || c.Due().Before(n.Due()) || (c.Due().Equal(n.Due()) && id < nodeID) {
			nodeID, n = id, c
		}
	}
	return nodeID, n, n != nil
}
