package runstate

import (
	"slices"

	"waybill.dev/waybill/protocol/wire"
)

// move is a transition of a run and the event that causes it (OpenWOP host contract §3.1).
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

// moves lists all transitions. Other events do not change the status.
var moves = []move{
	{[]wire.Status{wire.StatusPending}, wire.EventRunStarted, running},
	{live, wire.EventRunPaused, []wire.Status{wire.StatusPaused}}, // also when the last running node has left a question open
	{[]wire.Status{wire.StatusPaused}, wire.EventRunResumed, live},
	{open, wire.EventRunCancelled, []wire.Status{wire.StatusCancelled}},
	// A waiting run completes only on other hosts, by its external executor.
	{live, wire.EventRunCompleted, []wire.Status{wire.StatusCompleted}},
	{live, wire.EventRunFailed, []wire.Status{wire.StatusFailed}},
	// A run waits when a node is suspended and no node is active.
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
	// An answer that arrives while the run is paused is kept.
	{[]wire.Status{wire.StatusPaused}, wire.EventInterruptResolved, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeResumed, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeCompleted, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeFailed, []wire.Status{wire.StatusPaused}},
	// Nodes that were running when the cancellation arrived may still record their end.
	{ending, wire.EventNodeCompleted, ending},
	{ending, wire.EventNodeFailed, ending},
	{ending, wire.EventNodeRetried, ending},
	{ending, wire.EventNodeSuspended, ending},
	{ending, wire.EventInterruptRequested, ending},
}

// MayMove reports whether an event may change a run's status from one to another.
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

// isRunEvent reports whether an event changes the status of the run itself.
func isRunEvent(e wire.EventType) bool {
	switch e {
	case wire.EventRunStarted, wire.EventRunPaused, wire.EventRunResumed:
		return true
	default:
		return e.Terminal()
	}
}

// mayFollow reports whether a run event is valid at a status. The fold ignores all others: a second
// run.started does not restart the run, and a cancelling run is not paused (OpenWOP host contract
// §3.1).
func mayFollow(from wire.Status, e wire.EventType) bool {
	for i := range moves {
		if m := &moves[i]; m.event == e && slices.Contains(m.from, from) {
			return true
		}
	}
	return false
}

// NodeNever is the status of a node without events.
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
	// An answer may arrive before the node is suspended.
	wire.EventNodeResumed: {[]NodeStatus{NodeSuspended, NodeRunning, NodeStopped}, []NodeStatus{NodeRunning}},
}

// MayMoveNode reports whether an event may change its node's status from one to another. Events
// that do not change a node are always valid.
func MayMoveNode(from NodeStatus, e wire.EventType, to NodeStatus) bool {
	m, moves := nodeMoves[e]
	return !moves || slices.Contains(m.from, from) && slices.Contains(m.to, to)
}
