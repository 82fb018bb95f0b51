// Package runstate folds a run's events into its state. Dispatchers, the read
// model and tests use this one fold, so that they cannot disagree.
//
// The fold is pure: the same record and events give the same state, whatever
// the clock says. Unknown event types and members are ignored, as the protocol
// asks of readers; a fold never fails.
package runstate

import (
	"encoding/json"
	"maps"
	"time"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// NodeStatus is how far a node has come.
type NodeStatus string

// The statuses of a node. A node without events is absent from State.Nodes.
const (
	NodeRunning   NodeStatus = "running"
	NodeRetrying  NodeStatus = "retrying" // waits for its next attempt
	NodeSuspended NodeStatus = "suspended"
	// NodeStopped is a node whose attempt was cut by a pause: another begins when the
	// run goes on.
	NodeStopped   NodeStatus = "stopped"
	NodeCompleted NodeStatus = "completed"
	NodeFailed    NodeStatus = "failed"
	NodeSkipped   NodeStatus = "skipped"
	NodeCancelled NodeStatus = "cancelled"
)

// Terminal reports whether the node is done, one way or the other.
func (s NodeStatus) Terminal() bool {
	return s == NodeCompleted || s == NodeFailed || s == NodeSkipped || s == NodeCancelled
}

// Node is the state of one node.
type Node struct {
	Status NodeStatus
	TypeID string
	// Attempt is the 0-based number of the latest attempt.
	Attempt int
	// Fallback is the model that is asked instead of the node's own; nil: none. Its
	// names are modelgate.Withheld where the log does not tell them.
	Fallback *modelgate.Model
	// Outputs are the ports of node.completed.
	Outputs map[string]json.RawMessage
	Error   *wire.NodeError
	// Since is the timestamp of the event that led to Status, Began that of the first
	// attempt's start; empty: none has begun.
	Since, Began string
	// DelayMs is how long after Since the node's timer fires; 0: it has none.
	DelayMs int64
	// TimeoutMs is how long after Since an attempt that runs, or waits for capacity, has used
	// up its time; 0: as long as the run.
	TimeoutMs int64
	// Held reports that the effect of the running attempt has not begun.
	Held bool
	// Chunked reports that the running attempt has shown partial output.
	Chunked bool
	// Rounds counts the model calls of the running attempt whose usage is recorded.
	Rounds int
	// Retries are those of the running attempt's emission that the log announces.
	Retries []Retry
	// Prompt is what the running attempt has said of its prompt; nil: nothing.
	Prompt *Prompt
	// Clarifications counts the node's accepted clarification requests.
	Clarifications int
	// Spared counts attempts that were cut by a pause, ended with their executor, or met a
	// peer without capacity. They are none of the retries.
	Spared int
	// Lost counts attempts that ended with their executor.
	Lost int
	// Waits counts the waits for capacity since the last answer of another kind.
	Waits int
	// Trust is that of whatever the node has made or was given; it only falls.
	Trust wire.Trust
	// Child is the run that the running attempt has started; nil: none.
	Child *Child

	rests bool // it counts as resting
}

// ReasonProse is the reason of the extra call that puts prose into the schema. It is
// none of the attempts, so no attempt's reason is called so.
const ReasonProse = "prose"

// Retry is a further call of a model for one emission, announced before it goes out.
type Retry struct {
	// Attempt is its number; the emission's first call is 1. The extra call for prose
	// has none.
	Attempt int
	// Reason and Detail say what was wrong with the answer before.
	Reason, Detail string
	// Sequence is that of the event that announces it.
	Sequence int
}

// Prompt is a composition of prompt templates, as the log tells it.
type Prompt struct {
	Refs []string `json:"refs"`
	Hash string   `json:"hash"`
}

// Envelope is what the log says about an accepted envelope.
type Envelope struct {
	NodeID   string
	EventIDs []string
	// Kind, ID and Payload are known for kinds recorded as artifacts, and for those that
	// are Logged.
	Kind    string
	ID      string
	Payload json.RawMessage
	// Sequence is that of the event that records it, and Answer which part of the model's
	// answer it is.
	Sequence int
	Answer   wire.AnswerPart
	// Logged says that the envelope is told by log.appended: no artifact came of it.
	Logged bool
}

// State is a run as its events tell it.
type State struct {
	Record *wire.RunRecord
	Status wire.Status
	// EngineVersion is the latest of those that have worked on the run.
	EngineVersion int
	// Next is the sequence of the next event, LastAt the timestamp of the last.
	Next        int
	LastAt      string
	StartedAt   string
	CompletedAt string
	Nodes       map[string]*Node
	Variables   map[string]json.RawMessage
	// Channels are the channels of the run; a variable of the same name tells what a
	// channel holds.
	Channels map[string]*channel.State
	// Pins are the versions of changes that the run has settled for.
	Pins map[string]int
	// Tainted are the variables whose value came from an untrusted source.
	Tainted map[string]bool
	Error   *wire.NodeError
	// Executions counts transitions to started, retries included, but not what an executor
	// did that was lost.
	Executions int
	// Envelopes maps a correlationId to what was recorded for it.
	Envelopes map[string]*Envelope
	Cost      Cost
	// Outputs are the outputs of run.completed.
	Outputs json.RawMessage
	// Interrupts are the questions to somebody outside, in the order they were asked.
	Interrupts []*Interrupt
	// Pausing is set while a pause waits for nodes to end.
	Pausing *wire.PauseNote
	// PausedAt is when the pause took effect that the run is in.
	PausedAt string
	// Children are the runs that nodes have started, in the order they did.
	Children []*Child
	// Cancelling is set while a cancellation waits for children to end.
	Cancelling *wire.CancelNote

	// busy counts the nodes that go on by themselves, resting those of them that only wait for
	// their delay.
	busy, resting int
	// idle is how long the run was paused or waited, until idleSince if that is set.
	idle      time.Duration
	idleSince string
	// rest is how long the run waited for delays only while it was not idle, until restSince if
	// that is set.
	rest      time.Duration
	restSince string
}

// Cost sums the provider.usage events, and the costs that nodes tell of besides.
type Cost struct {
	Calls int
	// Others counts what has cost something and was no call of a model.
	Others       int
	InputTokens  int64
	OutputTokens int64
	USD          float64
	PricedCalls  int
	Provider     string
	Model        string
}

// New is the state of a run whose log holds its start frame only.
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
	maps.Copy(s.Variables, rec.Defaults)
	maps.Copy(s.Variables, rec.Inputs)
	s.openChannels()
	return s
}

// Fold is the state after the events of a log.
func Fold(rec *wire.RunRecord, events []wire.Event) *State {
	s := New(rec)
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

// node gives the state of a node, made on first mention.
func (s *State) node(id string) *Node {
	n := s.Nodes[id]
	if n == nil {
		n = &Node{Trust: wire.Trusted}
		s.Nodes[id] = n
	}
	return n
}

// Timer is the earliest timer of the run: the node, and the Since and DelayMs
// its due time follows from. ok is false when no node waits for one.
func (s *State) Timer() (nodeID string, n *Node, ok bool) {
	if s.Status.Terminal() || s.Status == wire.StatusPaused {
		return "", nil, false
	}
	for id, c := range s.Nodes {
		if c.wait() <= 0 || c.Status == NodeRetrying && s.Pausing != nil { // it is not tried again before the pause
			continue
		}
		if n == nil || c.Due().Before(n.Due()) || (c.Due().Equal(n.Due()) && id < nodeID) {
			nodeID, n = id, c
		}
	}
	return nodeID, n, n != nil
}
