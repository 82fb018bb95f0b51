package runstate

import (
	"slices"

	"waybill.dev/waybill/protocol/wire"
)

// move is a transition of a run: the event that makes it (OpenWOP host contract
// §3.1).
type move struct {
	from  []wire.Status
	event wire.EventType
	to    []wire.Status
}

var (
	waiting = []wire.Status{wire.StatusWaitingApproval, wire.StatusWaitingInput, wire.StatusWaitingExternal}
	running = []wire.Status{wire.StatusRunning}
	live    = slices.Concat(running, waiting)
	ending  = []wire.Status{wire.StatusCancelling}
	open    = slices.Concat(running, []wire.Status{wire.StatusPaused, wire.StatusCancelling}, waiting)
)

// moves are all transitions that there are. Any other event leaves the status as
// it is.
var moves = []move{
	{[]wire.Status{wire.StatusPending}, wire.EventRunStarted, running},
	{live, wire.EventRunPaused, []wire.Status{wire.StatusPaused}}, // also when the last node at work has left a question open
	{[]wire.Status{wire.StatusPaused}, wire.EventRunResumed, live},
	{open, wire.EventRunCancelled, []wire.Status{wire.StatusCancelled}},
	// One that waits completes only outside this host, where whoever opened it knows more.
	{live, wire.EventRunCompleted, []wire.Status{wire.StatusCompleted}},
	{live, wire.EventRunFailed, []wire.Status{wire.StatusFailed}},
	// A run waits when a node is suspended and none goes on.
	{live, wire.EventNodeSuspended, live},
	{live, wire.EventNodeResumed, live},
	{live, wire.EventNodeStarted, live},
	{live, wire.EventNodeCompleted, live},
	{live, wire.EventNodeFailed, live},
	{live, wire.EventNodeSkipped, live},
	{live, wire.EventNodeCancelled, live},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeCancelled, []wire.Status{wire.StatusPaused}},
	{ending, wire.EventNodeCancelled, ending},
	{running, wire.EventNodeRetried, running},
	{live, wire.EventInterruptRequested, live},
	{live, wire.EventInterruptResolved, live},
	// An answer that comes while the run is paused is kept.
	{[]wire.Status{wire.StatusPaused}, wire.EventInterruptResolved, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeResumed, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeCompleted, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeFailed, []wire.Status{wire.StatusPaused}},
	// What was at work when the cancellation came may still tell how it ended.
	{ending, wire.EventNodeCompleted, ending},
	{ending, wire.EventNodeFailed, ending},
	{ending, wire.EventNodeRetried, ending},
	{ending, wire.EventNodeSuspended, ending},
	{ending, wire.EventInterruptRequested, ending},
}

// MayMove reports whether an event may lead a run from one status to another.
func MayMove(from wire.Status, e wire.EventType, to wire.Status) bool {
	listed := false
	for _, m := range moves {
		if m.event != e {
			continue
		}
		listed = true
		if slices.Contains(m.from, from) && slices.Contains(m.to, to) {
			return true
		}
	}
	return !listed && from == to && from != wire.StatusPending && !from.Terminal()
}

// leads reports whether an event is one of the run itself, that leads it somewhere.
func leads(e wire.EventType) bool {
	switch e {
	case wire.EventRunStarted, wire.EventRunPaused, wire.EventRunResumed:
		return true
	default:
		return e.Terminal()
	}
}

// mayFollow reports whether an event of the run itself may come while the run has a
// status. The fold takes no other: a second run.started begins nothing anew, and
// what is being cancelled is not paused (OpenWOP host contract §3.1).
func mayFollow(from wire.Status, e wire.EventType) bool {
	for i := range moves {
		if m := &moves[i]; m.event == e && slices.Contains(m.from, from) {
			return true
		}
	}
	return false
}

// NodeNever is the status of a node that the log does not mention.
const NodeNever NodeStatus = ""

// nodeMoves are the transitions of a node by its events.
var nodeMoves = map[wire.EventType]struct{ from, to []NodeStatus }{
	wire.EventNodeStarted:   {[]NodeStatus{NodeNever, NodeRetrying, NodeStopped}, []NodeStatus{NodeRunning}},
	wire.EventNodeCompleted: {[]NodeStatus{NodeRunning}, []NodeStatus{NodeCompleted}},
	wire.EventNodeFailed:    {[]NodeStatus{NodeNever, NodeRunning, NodeSuspended, NodeRetrying}, []NodeStatus{NodeFailed}},
	wire.EventNodeRetried:   {[]NodeStatus{NodeRunning}, []NodeStatus{NodeRetrying}},
	wire.EventNodeSkipped:   {[]NodeStatus{NodeNever}, []NodeStatus{NodeSkipped}},
	wire.EventNodeCancelled: {[]NodeStatus{NodeRunning, NodeSuspended, NodeRetrying, NodeStopped}, []NodeStatus{NodeCancelled}},
	wire.EventNodeSuspended: {[]NodeStatus{NodeRunning}, []NodeStatus{NodeSuspended}},
	// An answer may come before the node could wait.
	wire.EventNodeResumed: {[]NodeStatus{NodeSuspended, NodeRunning, NodeStopped}, []NodeStatus{NodeRunning}},
}

// MayMoveNode reports whether an event may lead its node from one status to another;
// an event that moves no node may come at any.
func MayMoveNode(from NodeStatus, e wire.EventType, to NodeStatus) bool {
	m, moves := nodeMoves[e]
	return !moves || slices.Contains(m.from, from) && slices.Contains(m.to, to)
}
