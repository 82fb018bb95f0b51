package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Advance takes every step that needs no effect, and returns the effects to execute next.
// Afterwards the run has ended, effects are running, it waits for a timer (see Due) or a resume, or
// its events must be appended first (see MustAppend).
func (m *Machine) Advance(now time.Time) []Effect {
	m.pending.markExternal(m.FrameKind())
	m.mustAppend = false
	return m.runner.advance(now)
}

// isLive reports whether the run may take a step: it runs, or waits at some of its nodes.
func (m *Machine) isLive() bool {
	return m.st.Status == wire.StatusRunning || m.st.Status.Suspended()
}

// Begin starts the run unless it has started: run.started is always sequence 0.
func (m *Machine) Begin(now time.Time) {
	if m.st.Status == wire.StatusPending {
		m.env.startRun(now)
	}
}

type startedPayload struct {
	WorkflowID    string                     `json:"workflowId"`
	Inputs        map[string]json.RawMessage `json:"inputs,omitempty"`
	Transport     string                     `json:"transport,omitempty"`
	EngineVersion string                     `json:"engineVersion"`
	Owner         wire.Owner                 `json:"owner"`
	Tags          []string                   `json:"tags,omitempty"`
	Metadata      json.RawMessage            `json:"metadata,omitempty"`
}

// untrustedOnly returns the empty value for trusted, which is the default.
func untrustedOnly(t wire.Trust) wire.Trust {
	if t == wire.Untrusted {
		return t
	}
	return ""
}

// Deadline is when the run exceeds its time limit; the zero time while its time does not run,
// because it has not started, or waits.
func (m *Machine) Deadline() time.Time {
	t, _ := m.deadline()
	return t
}

func (m *Machine) deadline() (at time.Time, limit time.Duration) {
	at, limit, _ = m.st.Deadline(m.timeLimit())
	return at, limit
}

// timeLimit is the time limit of the workflow and the run's creator. A record without limits is of
// an earlier version, which uses the host's limit.
func (m *Machine) timeLimit() time.Duration {
	if rec := m.st.Record; rec.DurationMs > 0 || rec.WorkMs > 0 {
		return time.Duration(rec.DurationMs) * time.Millisecond
	}
	d := m.limits.MaxDuration
	// Compared as milliseconds: a huge number must not overflow into a small one.
	if ms := m.overlay().RunTimeoutMs; ms > 0 && ms < float64(d.Milliseconds()) {
		d = time.Duration(ms * float64(time.Millisecond))
	}
	if ms := m.plan.Def.Settings.TimeoutMillis; ms > 0 && ms < d.Milliseconds() {
		d = time.Duration(ms) * time.Millisecond
	}
	return d
}

// executionLimit is the limit of the record, else min(configurable.recursionLimit,
// limits.maxNodeExecutions).
func (m *Machine) executionLimit() int {
	if n := m.st.Record.MaxExecutions; n > 0 {
		return n
	}
	if n := m.overlay().RecursionLimit; n > 0 && n < float64(m.limits.MaxNodeExecutions) {
		return int(n)
	}
	return m.limits.MaxNodeExecutions
}

// maxDelay limits a core.delay; 0 means the limit of earlier versions.
func (m *Machine) maxDelay() time.Duration {
	if m.st.Record.WorkMs > 0 {
		return workflow.MaxWait
	}
	return 0
}

type overlay struct {
	RecursionLimit float64 `json:"recursionLimit"` // 3.0 is an integer, too
	RunTimeoutMs   float64 `json:"runTimeoutMs"`
}

func (m *Machine) overlay() overlay {
	var o overlay
	_ = strictjson.Read(m.st.Record.Configurable, &o) // checked at creation
	return o
}

// enforceTimeLimit ends a run that exceeded its time limit.
func (m *Machine) enforceTimeLimit(now time.Time) bool {
	deadline, limit := m.deadline()
	if deadline.IsZero() || now.Before(deadline) {
		return false
	}
	elapsed := limit + now.Sub(deadline)
	// observed is strictly greater than limit.
	m.emitFact(now, wire.EventCapBreached, "", capPayload{
		Kind: capDuration, Limit: limit.Milliseconds(), Observed: max(elapsed.Milliseconds(), limit.Milliseconds()+1),
	})
	m.cancelNodes(now, "run_timeout")
	m.endFailed(now, "", &wire.NodeError{
		Code: string(fault.RunTimeout), Message: fmt.Sprintf("the run did not end within %d ms", limit.Milliseconds()),
	})
	return true
}

type capPayload struct {
	Kind     string `json:"kind"`
	Limit    int64  `json:"limit"`
	Observed int64  `json:"observed"`
	NodeID   string `json:"nodeId,omitempty"`
}

// fireTimers completes waits that are due.
func (m *Machine) fireTimers(now time.Time) bool {
	id, n, ok := m.st.Timer()
	if !ok || now.Before(n.Due()) {
		return false
	}
	switch n.Status {
	case runstate.NodeRetrying:
		m.startNode(now, id, n.Attempt)
	case runstate.NodeSuspended:
		m.escalateOrExpire(now, id)
	default:
		if !m.enforceAttemptTimeout(now, id, n) {
			m.Complete(now, id, node.Output{}, wire.Trusted)
		}
	}
	return true
}

// Due is when the machine must advance without new input: the next timer or the time limit. ok is
// false when the run has ended, or waits without a limit.
func (m *Machine) Due() (time.Time, bool) {
	due := m.Deadline()
	if _, n, ok := m.st.Timer(); ok && (due.IsZero() || n.Due().Before(due)) {
		due = n.Due()
	}
	return due, !due.IsZero()
}

// stepReady starts or skips the first ready node; false if there is none. While a pause waits for
// nodes to end, no node starts.
func (m *Machine) stepReady(now time.Time) bool {
	for i := range m.plan.Graph.Steps {
		step := &m.plan.Graph.Steps[i]
		id := step.Node.ID
		if m.st.Nodes[id] != nil {
			continue
		}
		switch v, reason := m.readiness(step); v {
		case ready:
			if m.st.Pausing != nil {
				continue
			}
			m.startNode(now, id, 0)
			return true
		case skip:
			m.emitFact(now, wire.EventNodeSkipped, id, nodePayload{NodeID: id, Reason: reason})
			return true
		case broken:
			m.failNode(now, id, node.Invalid("%s", reason), 0, m.nodeTrust(id))
			return true
		case notYet:
		}
	}
	return false
}

type nodePayload struct {
	NodeID  string                     `json:"nodeId"`
	TypeID  string                     `json:"typeId,omitempty"`
	Reason  string                     `json:"reason,omitempty"`
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"`
	// Turn is the form of a model's answer that the host chose.
	Turn string `json:"turn,omitempty"`
}

type startedNodePayload struct {
	NodeID  string `json:"nodeId"`
	TypeID  string `json:"typeId"`
	Attempt int    `json:"attempt"`
	DelayMs int64  `json:"delayMs,omitempty"`
	// TimeoutMs is an extension: how long the attempt may take.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// startNode checks whether a node may start, and starts it. A pure node also completes.
func (m *Machine) startNode(now time.Time, id string, attempt int) {
	def := m.step(id).Node
	t, known := m.plan.Types[def.TypeID]
	if !known {
		m.failNode(now, id, unsupportedType(def.TypeID), attempt, wire.Trusted)
		return
	}
	if m.env.gateAttempt(now, id, t, attempt) {
		return
	}
	if out := m.editedOutputs(id); out != nil {
		m.completeEdited(now, id, out, attempt)
		return
	}
	m.ageChannels(now, id)
	in, trust, bad := m.gatherInput(id)
	started := startedNodePayload{NodeID: id, TypeID: def.TypeID, Attempt: attempt}
	if bad == nil {
		bad = t.CheckInput(in.Ports)
	}
	if bad == nil && t.Class == node.Timer {
		in.MaxDelay = m.maxDelay()
		started.DelayMs, bad = t.Delay(in)
	}
	if t.Class == node.Effect {
		started.TimeoutMs = m.attemptTimeout(now, id, attempt)
	}
	if bad == nil && t.Class == node.Spawns {
		bad = t.Check(in.Config)
	}
	m.emitFact(now, wire.EventNodeStarted, id, started)
	delete(m.handedOut, id)
	if bad == nil {
		bad = m.pinVersions(now, id, t.Changes)
	}
	if bad != nil {
		m.failNode(now, id, bad, attempt, trust)
		return
	}
	if t.Class == node.Effect {
		m.holdEffect(id)
	}
	if t.Class != node.Timer || started.DelayMs == 0 {
		m.performNode(now, id, t, in, attempt, trust)
	}
}

// performNode executes a node that needs no effect. A wait of a timer is over.
func (m *Machine) performNode(now time.Time, id string, t node.Type, in node.Input, attempt int, trust wire.Trust) {
	switch {
	case t.Class == node.Asks && !m.env.isRecorded(id, attempt):
		m.suspendForAnswer(now, id, t, in, attempt, trust)
	case t.Class == node.Timer:
		m.Complete(now, id, node.Output{}, wire.Trusted)
	case t.Class == node.Pure:
		in.Flow, in.MaxLoop = m.plan.Flow, m.plan.Def.Settings.MaxLoopbackIterations
		out, failed := t.Do(in)
		trust = trust.Meet(trustOf(out.Untrusted))
		if failed != nil {
			m.emitLoopBreach(now, id, out.Loop)
			m.failNode(now, id, failed, attempt, trust)
			return
		}
		m.Complete(now, id, out, trust)
	}
}

// enforceExecutionLimit ends the run if one more start would exceed its limit. The node does not
// get node.started (OpenWOP host contract §3.5).
func (m *Machine) enforceExecutionLimit(now time.Time, id string) bool {
	limit := m.executionLimit()
	if m.st.Executions < limit {
		return false
	}
	m.emitFact(now, wire.EventCapBreached, id, capPayload{
		Kind: capExecutions, Limit: int64(limit), Observed: int64(limit) + 1, NodeID: id,
	})
	m.cancelNodes(now, string(fault.RecursionLimit))
	m.endFailed(now, "", &wire.NodeError{
		Code:    string(fault.RecursionLimit),
		Message: fmt.Sprintf("the run may execute %d nodes; node %q would be one more", limit, id),
	})
	return true
}

// collectEffects returns the running effect nodes that were not handed out yet, up to the limit of
// parallel ones. A node whose inputs fail because variables changed since its start fails, and
// further steps may follow.
func (m *Machine) collectEffects(now time.Time) (out []Effect, broken bool) {
	if !m.isLive() {
		return nil, false
	}
	running := 0
	for id := range m.handedOut {
		if n := m.st.Nodes[id]; n != nil && n.Status == runstate.NodeRunning {
			running++
		} else {
			delete(m.handedOut, id)
		}
	}
	for i := range m.plan.Graph.Steps {
		id := m.plan.Graph.Steps[i].Node.ID
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning || m.handedOut[id] || running >= m.limits.MaxParallel {
			continue
		}
		t := m.plan.Types[n.TypeID]
		if !m.needsExecutor(id, n) {
			continue
		}
		in, trust, bad := m.gatherInput(id)
		if bad != nil {
			m.failNode(now, id, bad, n.Attempt, trust)
			return out, true
		}
		// The effect runs concurrently with the machine, which changes its maps.
		in.Variables, in.UntrustedVariables = maps.Clone(in.Variables), maps.Clone(in.UntrustedVariables)
		in.Versions = maps.Clone(in.Versions)
		m.handedOut[id] = true
		running++
		out = append(out, Effect{
			NodeID:          id,
			TypeID:          t.Executes(),
			Attempt:         n.Attempt,
			Input:           in,
			Trust:           trust,
			Clarifications:  n.Clarifications,
			QuestionTimeout: m.questionTimeout(id),
			Waits:           n.Waits,
			Answered:        m.st.AnsweredOf(id),
			Fallback:        n.Fallback,
			Needs:           t.Needs,
			Retries:         slices.Clone(n.Retries),
			Spawn:           m.spawnOf(id, t, in, trust),
		})
	}
	return out, false
}
