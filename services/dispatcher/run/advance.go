package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Advance takes every step that is possible without anybody outside, and
// returns the effects to carry out next. Afterwards the run has ended, or
// effects are running, or it waits for a timer (see Due) or a resume.
func (m *Machine) Advance(now time.Time) []Effect {
	m.Begin(now)
	m.recoverNodes(now)
	for m.st.Status == wire.StatusRunning {
		if m.timedOut(now) || m.fireTimers(now) || m.stepReady(now) {
			continue
		}
		m.finish(now)
		break
	}
	return m.effects()
}

// Begin starts the run if nobody has: run.started is always sequence 0.
func (m *Machine) Begin(now time.Time) {
	if m.st.Status == wire.StatusPending {
		m.start(now)
	}
}

// start writes the run's first event. It happens when an executor has claimed
// the run, so that waiting in the queue does not count against its time.
func (m *Machine) start(now time.Time) {
	r := m.st.Record
	m.emit(now, wire.Draft{Type: wire.EventRunStarted, Payload: mustJSON(startedPayload{
		WorkflowID: r.WorkflowID, Inputs: r.Inputs, Transport: r.Transport, EngineVersion: strconv.Itoa(r.EngineVersion),
		Owner: r.Owner, Tags: r.Tags, Metadata: r.Metadata,
	}), Trust: untrustedOnly(r.TrustBoundary)}, true) // the record has passed the redactor
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

// untrustedOnly leaves trusted unwritten: absent means trusted.
func untrustedOnly(t wire.Trust) wire.Trust {
	if t == wire.Untrusted {
		return t
	}
	return ""
}

// Deadline is when the run runs into its time limit; the zero time before it started.
func (m *Machine) Deadline() time.Time {
	t, err := time.Parse(wire.TimeLayout, m.st.StartedAt)
	if err != nil {
		return time.Time{}
	}
	return t.Add(m.duration())
}

// duration is min(configurable.runTimeoutMs, limits.maxRunDurationMs, settings.timeout if > 0).
func (m *Machine) duration() time.Duration {
	d := m.limits.MaxDuration
	if ms := m.st.Record.DurationMs; ms > 0 {
		return time.Duration(min(ms, d.Milliseconds())) * time.Millisecond
	}
	// Compared as milliseconds: a huge number must not overflow into a small one.
	if ms := m.overlay().RunTimeoutMs; ms > 0 && ms < float64(d.Milliseconds()) {
		d = time.Duration(ms * float64(time.Millisecond))
	}
	if ms := m.plan.Def.Settings.TimeoutMillis; ms > 0 && ms < d.Milliseconds() {
		d = time.Duration(ms) * time.Millisecond
	}
	return d
}

// executionLimit is min(configurable.recursionLimit, limits.maxNodeExecutions).
func (m *Machine) executionLimit() int {
	if n := m.overlay().RecursionLimit; n > 0 && n < float64(m.limits.MaxNodeExecutions) {
		return int(n)
	}
	return m.limits.MaxNodeExecutions
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

// timedOut ends a run that has used up its time.
func (m *Machine) timedOut(now time.Time) bool {
	limit := m.duration()
	started := m.Deadline().Add(-limit)
	elapsed := now.Sub(started)
	if elapsed < limit {
		return false
	}
	// observed is strictly greater than limit.
	m.fact(now, wire.EventCapBreached, "", capPayload{
		Kind: "run-duration", Limit: limit.Milliseconds(), Observed: max(elapsed.Milliseconds(), limit.Milliseconds()+1),
	})
	m.cancelNodes(now, "run_timeout")
	m.fail(now, "", &wire.NodeError{
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

// fireTimers completes waits whose time has come.
func (m *Machine) fireTimers(now time.Time) bool {
	id, n, ok := m.st.Timer()
	if !ok || now.Before(n.Due()) {
		return false
	}
	if n.Status == runstate.NodeRetrying {
		m.startNode(now, id, n.Attempt)
		return true
	}
	m.Complete(now, id, node.Output{}, wire.Trusted)
	return true
}

// Due is when the run needs to be looked at again without anybody's doing: its
// next timer or its time limit. ok is false when it has ended.
func (m *Machine) Due() (time.Time, bool) {
	if m.st.Status != wire.StatusRunning {
		return time.Time{}, false
	}
	due := m.Deadline()
	if _, n, ok := m.st.Timer(); ok && n.Due().Before(due) {
		due = n.Due()
	}
	return due, true
}

// stepReady starts or skips the first node that is ready; false when none is.
func (m *Machine) stepReady(now time.Time) bool {
	for i := range m.plan.Graph.Steps {
		step := &m.plan.Graph.Steps[i]
		id := step.Node.ID
		if m.st.Nodes[id] != nil {
			continue
		}
		switch v, reason := m.readiness(step); v {
		case ready:
			m.startNode(now, id, 0)
			return true
		case skip:
			m.fact(now, wire.EventNodeSkipped, id, nodePayload{NodeID: id, Reason: reason})
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
}

type startedNodePayload struct {
	NodeID  string `json:"nodeId"`
	TypeID  string `json:"typeId"`
	Attempt int    `json:"attempt"`
	DelayMs int64  `json:"delayMs,omitempty"`
}

// startNode gates a node and starts it; a pure one is done at once.
func (m *Machine) startNode(now time.Time, id string, attempt int) {
	def := m.step(id).Node
	t, known := m.plan.Types[def.TypeID]
	if !known {
		m.failNode(now, id, unsupported(def.TypeID), attempt, wire.Trusted)
		return
	}
	if m.lacksSecret(now, id, t, attempt) || m.lacksModel(now, id, t, attempt) || m.breachesExecutions(now, id) {
		return
	}
	in, trust, bad := m.input(id)
	started := startedNodePayload{NodeID: id, TypeID: def.TypeID, Attempt: attempt}
	if bad == nil {
		bad = t.CheckInput(in.Ports)
	}
	if bad == nil && t.Class == node.Timer {
		started.DelayMs, bad = t.Delay(in)
	}
	m.fact(now, wire.EventNodeStarted, id, started)
	switch {
	case bad != nil:
		m.failNode(now, id, bad, attempt, trust)
	case t.Class == node.Timer && started.DelayMs == 0:
		m.Complete(now, id, node.Output{}, wire.Trusted)
	case t.Class == node.Pure:
		out, failed := t.Do(in)
		if failed != nil {
			m.failNode(now, id, failed, attempt, trust)
			return
		}
		m.Complete(now, id, out, trust)
	}
}

// breachesExecutions ends the run when one more start would exceed its limit.
// The breaching node gets no node.started (OpenWOP host contract §3.5).
func (m *Machine) breachesExecutions(now time.Time, id string) bool {
	limit := m.executionLimit()
	if m.st.Executions < limit {
		return false
	}
	m.fact(now, wire.EventCapBreached, id, capPayload{Kind: "node-executions", Limit: int64(limit), Observed: int64(limit) + 1, NodeID: id})
	m.cancelNodes(now, string(fault.RecursionLimit))
	m.fail(now, "", &wire.NodeError{
		Code: string(fault.RecursionLimit), Message: fmt.Sprintf("the run may execute %d nodes; node %q would be one more", limit, id),
	})
	return true
}

// effects are the running effect nodes not yet handed out, up to the limit of parallel ones.
func (m *Machine) effects() []Effect {
	if m.st.Status != wire.StatusRunning {
		return nil
	}
	running := 0
	for id := range m.asked {
		if n := m.st.Nodes[id]; n != nil && n.Status == runstate.NodeRunning {
			running++
		} else {
			delete(m.asked, id)
		}
	}
	var out []Effect
	for i := range m.plan.Graph.Steps {
		id := m.plan.Graph.Steps[i].Node.ID
		n := m.st.Nodes[id]
		if n == nil || n.Status != runstate.NodeRunning || m.asked[id] || running >= m.limits.MaxParallel {
			continue
		}
		t := m.plan.Types[n.TypeID]
		if t.Class != node.Effect {
			continue
		}
		in, trust, bad := m.input(id)
		if bad != nil {
			continue // startNode has failed such a node
		}
		// The effect goes on beside the machine, whose maps change meanwhile.
		in.Variables, in.UntrustedVariables = maps.Clone(in.Variables), maps.Clone(in.UntrustedVariables)
		m.asked[id] = true
		running++
		out = append(out, Effect{
			NodeID: id, TypeID: t.Executes(), Attempt: n.Attempt, Input: in, Trust: trust, Clarifications: n.Clarifications,
			Fallback: n.Fallback, Needs: t.Needs, Retries: slices.Clone(n.Retries),
		})
	}
	return out
}
