package machine

import (
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// replay replays the history of another run. It is the runner and the environment of its machine.
type replay struct {
	*Machine
	history *History
	// repaired is set once a partial step is complete.
	repaired bool
}

// maxReplayEvents limits the events of one frame of a replay.
const maxReplayEvents = 512

// advance takes the run to the end of its history. The source's next recorded event comes next here,
// too, so that the order is the same even if several nodes ran in parallel. A replay has no effects.
func (r *replay) advance(now time.Time) []Effect {
	r.Begin(now)
	r.Repair(now)
	for !r.st.Status.Terminal() {
		if len(r.pending.events) >= maxReplayEvents || r.pending.isFull() {
			r.mustAppend = true
			return nil
		}
		if !r.replayStep(now) {
			r.finishPause(now)
			return nil
		}
	}
	return nil
}

// dropped does nothing: a replay recovers no effects.
func (*replay) dropped(pending) {}

// enqueues is false: the session of this machine continues the replay.
func (*replay) enqueues() bool { return false }

// repair completes a step with the rest of its events in the history. The next replayed events
// complete a question or an answer.
func (r *replay) repair(now time.Time) {
	if r.repaired {
		return
	}
	r.repaired = true
	for id, n := range r.unfinishedNodes() {
		t := r.plan.Types[n.TypeID]
		switch {
		case r.repairEdited(now, id, n):
		case isGated(n):
			r.startNode(now, id, n.Attempt)
		case runsWithoutEffect(n, t):
			if !r.repeatRest(now, r.history, id, n.Attempt) {
				r.redoNode(now, id, t, n.Attempt)
			}
		}
	}
}

// replayStep takes one step; false if there is none.
func (r *replay) replayStep(now time.Time) bool {
	c, outer := r.nextRecorded()
	switch {
	case c != nil && c.Sequence <= r.history.nextSequence():
	case r.isLive() && r.stepReady(now):
		return true
	case r.isLive() && r.finishIfDone(now):
		return true
	case c == nil:
		return r.isLive() && r.advanceUnrecorded(now)
	}
	r.replayEvent(now, c, outer)
	return true
}

// finishIfDone ends the run if all of its nodes ended.
func (r *replay) finishIfDone(now time.Time) bool {
	if r.st.Pausing == nil {
		r.finishRun(now)
	}
	return r.st.Status.Terminal()
}

// nextRecorded returns the earliest recorded event that can occur now; nil if there is none.
func (r *replay) nextRecorded() (c *recorded, outer bool) {
	c = r.history.external.peek()
	since, paused := r.history.external.pausedSince()
	held := r.st.Status == wire.StatusPaused
	if held && !paused && (c == nil || c.Type != wire.EventRunResumed) {
		return nil, false // the replay itself was paused
	}
	outer = c != nil
	for _, step := range r.plan.Graph.Steps {
		n := r.st.Nodes[step.Node.ID]
		if n == nil || n.Status == "" || n.Status.Terminal() {
			continue
		}
		x := r.history.nodes[step.Node.ID].peek()
		if x == nil || !belongsToAttempt(n, x) || c != nil && c.Sequence <= x.Sequence {
			continue
		}
		if held && (!paused || x.Sequence < since) {
			continue // a paused source records only answers
		}
		c, outer = x, false
	}
	return c, outer
}

// belongsToAttempt reports whether a recorded event belongs to the node's current or next attempt.
func belongsToAttempt(n *runstate.Node, c *recorded) bool {
	return c.attempt == n.Attempt || n.Status == runstate.NodeStopped && c.attempt == n.Attempt+1
}

// isRecomputed reports whether a node's type is executed in a replay.
func (r *replay) isRecomputed(n *runstate.Node) bool {
	t, known := r.plan.Types[n.TypeID]
	return known && (t.Class == node.Pure || t.Class == node.Timer)
}

// replayEvent applies a recorded event.
func (r *replay) replayEvent(now time.Time, c *recorded, outer bool) {
	if outer {
		r.replayExternal(now, c)
		return
	}
	n := r.st.Nodes[c.NodeID]
	switch {
	case r.st.Status == wire.StatusPaused: // an answer during the pause
		r.repeatEvent(now, c)
	case n.Status == runstate.NodeRetrying || n.Status == runstate.NodeStopped:
		r.startNode(now, c.NodeID, c.attempt)
	case r.isRecomputed(n): // a timer: replays do not wait
		r.Complete(now, c.NodeID, node.Output{}, wire.Trusted)
	default:
		r.repeatEvent(now, c)
	}
}

// replayExternal applies an event that came from outside.
func (r *replay) replayExternal(now time.Time, c *recorded) {
	switch {
	case c.Type == wire.EventNodeCancelled:
		if n := r.st.Nodes[c.NodeID]; n == nil || n.Status.Terminal() {
			r.history.external.pos++ // the replay diverged here
			return
		}
	case c.Type.Terminal():
		r.cancelNodes(now, "cancelled")
	}
	r.repeatEvent(now, c)
}

// advanceUnrecorded continues beyond the recorded history. A timer fires immediately, a waiting
// attempt starts, and a node that needs an external call or a child run fails.
func (r *replay) advanceUnrecorded(now time.Time) bool {
	for _, step := range r.plan.Graph.Steps {
		id := step.Node.ID
		n := r.st.Nodes[id]
		if n == nil {
			continue
		}
		switch {
		case n.Status == runstate.NodeRetrying:
			r.startNode(now, id, n.Attempt)
			return true
		case n.Status == runstate.NodeStopped:
			r.startNode(now, id, n.Attempt+1)
			return true
		case n.Status == runstate.NodeRunning && r.isRecomputed(n):
			r.Complete(now, id, node.Output{}, wire.Trusted)
			return true
		case n.Status == runstate.NodeRunning:
			r.failNode(now, id, r.history.missingOutcome(id, n.Attempt), n.Attempt, wire.Trusted)
			return true
		case n.Status == runstate.NodeSuspended && n.Child != nil: // the question is that of the source's child
			r.emitFact(now, wire.EventNodeResumed, id, mirrorPayload{NodeID: id, InterruptID: n.Child.InterruptID})
			r.failNode(now, id, r.history.missingOutcome(id, n.Attempt), n.Attempt, wire.Trusted)
			return true
		case n.Status == runstate.NodeSuspended && n.DelayMs > 0 && !now.Before(n.Due()):
			r.escalateOrExpire(now, id)
			return true
		}
	}
	return false
}

// missingOutcome is the error of a node without a recorded outcome.
func (h *History) missingOutcome(id string, attempt int) *wire.NodeError {
	return SourceMissing(h.fork.SourceRunID, id, attempt)
}

// SourceMissing is the error of a replayed node whose outcome the source has not recorded. A replay
// makes no calls.
func SourceMissing(source, id string, attempt int) *wire.NodeError {
	return &wire.NodeError{
		Code: string(fault.ReplaySourceMissing),
		Message: fmt.Sprintf("run %s has recorded no outcome of attempt %d of node %q; "+
			"a replay makes no calls: fork in mode branch to execute it", source, attempt, id),
		Details: map[string]any{"sourceRunId": source, "nodeId": id, "attempt": attempt},
	}
}
