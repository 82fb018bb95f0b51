package sim

import (
	"slices"

	"waybill.dev/waybill/protocol/runstate"
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
	open    = slices.Concat(running, []wire.Status{wire.StatusPaused, wire.StatusCancelling}, waiting)
)

// moves are all transitions that there are. Any other event leaves the status as
// it is.
var moves = []move{
	{[]wire.Status{wire.StatusPending}, wire.EventRunStarted, running},
	{live, wire.EventRunPaused, []wire.Status{wire.StatusPaused}}, // also when the last node at work has left a question open
	{[]wire.Status{wire.StatusPaused}, wire.EventRunResumed, live},
	{open, wire.EventRunCancelled, []wire.Status{wire.StatusCancelled}},
	{running, wire.EventRunCompleted, []wire.Status{wire.StatusCompleted}},
	{open, wire.EventRunFailed, []wire.Status{wire.StatusFailed}},
	// A run waits when a node is suspended and none goes on.
	{live, wire.EventNodeSuspended, live},
	{live, wire.EventNodeResumed, live},
	{live, wire.EventNodeStarted, live},
	{live, wire.EventNodeCompleted, live},
	{live, wire.EventNodeFailed, live},
	{live, wire.EventNodeSkipped, live},
	{open, wire.EventNodeCancelled, open},
	{running, wire.EventNodeRetried, running},
	{live, wire.EventInterruptRequested, live},
	{live, wire.EventInterruptResolved, live},
	// An answer that comes while the run is paused is kept.
	{[]wire.Status{wire.StatusPaused}, wire.EventInterruptResolved, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeResumed, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeCompleted, []wire.Status{wire.StatusPaused}},
	{[]wire.Status{wire.StatusPaused}, wire.EventNodeFailed, []wire.Status{wire.StatusPaused}},
}

// mayMove reports whether an event may lead from one status to another.
func mayMove(from wire.Status, e wire.EventType, to wire.Status) bool {
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

// never is the status of a node that the log does not mention.
const never runstate.NodeStatus = ""

// nodeMoves are the transitions of a node by its events.
var nodeMoves = map[wire.EventType]struct{ from, to []runstate.NodeStatus }{
	wire.EventNodeStarted:   {[]runstate.NodeStatus{never, runstate.NodeRetrying, runstate.NodeStopped}, []runstate.NodeStatus{runstate.NodeRunning}},
	wire.EventNodeCompleted: {[]runstate.NodeStatus{runstate.NodeRunning, runstate.NodeSuspended}, []runstate.NodeStatus{runstate.NodeCompleted}},
	wire.EventNodeFailed: {
		[]runstate.NodeStatus{never, runstate.NodeRunning, runstate.NodeSuspended, runstate.NodeRetrying}, []runstate.NodeStatus{runstate.NodeFailed},
	},
	wire.EventNodeRetried: {[]runstate.NodeStatus{runstate.NodeRunning}, []runstate.NodeStatus{runstate.NodeRetrying}},
	wire.EventNodeSkipped: {[]runstate.NodeStatus{never}, []runstate.NodeStatus{runstate.NodeSkipped}},
	wire.EventNodeCancelled: {
		[]runstate.NodeStatus{runstate.NodeRunning, runstate.NodeSuspended, runstate.NodeRetrying, runstate.NodeStopped}, []runstate.NodeStatus{runstate.NodeCancelled},
	},
	wire.EventNodeSuspended: {[]runstate.NodeStatus{runstate.NodeRunning}, []runstate.NodeStatus{runstate.NodeSuspended}},
	wire.EventNodeResumed:   {[]runstate.NodeStatus{runstate.NodeSuspended}, []runstate.NodeStatus{runstate.NodeRunning}},
}

// ofRunning are the events that only a running node has.
var ofRunning = []wire.EventType{
	wire.EventOutputChunk, wire.EventVariableChanged, wire.EventArtifactCreated, wire.EventProviderUsage, wire.EventEnvelopeRetryAttempted,
	wire.EventEnvelopeRetryExhausted, wire.EventEnvelopeRefusal, wire.EventEnvelopeTruncated,
}
