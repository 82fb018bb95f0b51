package machine

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// suspendForAnswer suspends a node until it is answered from outside. A question that the run has
// an answer to is not repeated (OpenWOP host contract §6.1).
func (m *Machine) suspendForAnswer(
	now time.Time, id string, t node.Type, in node.Input, attempt int, trust wire.Trust,
) {
	at := interrupt.Origin{RunID: m.st.Record.RunID, NodeID: id, Count: m.st.Asked(id)}
	r, untrusted, bad := question(at, t, in)
	if bad != nil {
		m.failNode(now, id, bad, attempt, trust)
		return
	}
	trust = trust.Meet(trustOf(untrusted))
	if known, ok := m.st.Answered(r); ok {
		if denied := known.Denied(known.ResumeValue); denied != nil {
			m.failNode(now, id, denied, attempt, trust.Meet(known.Trust))
			return
		}
		m.completeAnswered(now, id, interrupt.Outputs(known.ResumeValue), attempt, trust.Meet(known.Trust))
		return
	}
	r = r.WithObserved(in.Ports[portObserved])
	if wrong := r.CheckData(); len(wrong) > 0 {
		m.failNode(now, id, node.Invalid("node %s: /config%s: %s", id, wrong[0].Path, wrong[0].Message), attempt, trust)
		return
	}
	if sure, ok := r.Confident(); ok { // OpenWOP host contract §6.1, low-confidence
		if !in.UntrustedPorts[portObserved] && !in.UntrustedPorts[portDecision] {
			m.completeAnswered(now, id, sure, attempt, trust)
			return
		}
		m.noteUntrusted(now, id, trust)
	}
	m.openInterrupt(now, at, r, trust)
}

// question returns the question of a node: its config with the placeholders filled, and the value of the
// port input. The placeholders come first, because the port may have text that looks like one. untrusted
// means that an untrusted value is in a text.
func question(at interrupt.Origin, t node.Type, in node.Input) (r interrupt.Request, untrusted bool, bad *wire.NodeError) {
	r, wrong := interrupt.From(t.Executes(), at, in.Config)
	if len(wrong) > 0 {
		return r, false, node.Invalid("node %s: /config%s: %s", at.NodeID, wrong[0].Path, wrong[0].Message)
	}
	if node.HasPlaceholders(r.Data) {
		fill := &node.Template{In: in}
		path := "/config"
		if t.Executes() == interrupt.TypeInterrupt {
			path += "/data"
		}
		if r, bad = r.Fill(path, fill); bad != nil {
			bad.Message = "node " + at.NodeID + ": " + bad.Message
			return r, false, bad
		}
		untrusted = fill.Untrusted
		if bad := checkSize(len(r.Data), maxNodeBytes, "the question is"); bad != nil {
			return r, false, bad
		}
	}
	if shown, ok := in.Ports[portDecision]; ok {
		r = r.WithArtifact(shown)
	}
	return r, untrusted, nil
}

// The ports of a low-confidence gate that decide without a person: the confidence, and the decision.
const (
	portObserved = "observed"
	portDecision = "input"
)

// noteUntrusted records that a gate asks a person although the confidence reaches its threshold:
// untrusted content never advances an approval (OpenWOP host contract §6.6).
func (m *Machine) noteUntrusted(now time.Time, id string, trust wire.Trust) {
	m.emitData(now, wire.EventLogAppended, id, trust.Meet(wire.Untrusted), logPayload{
		Level:   "warn",
		Message: "the confidence is from an untrusted source and does not pass the gate; a person must answer",
		NodeID:  id,
		Fields:  map[string]any{"code": fault.UntrustedBlocksApproval},
	})
}

type logPayload struct {
	Level   string         `json:"level"`
	Message string         `json:"message"`
	NodeID  string         `json:"nodeId"`
	Fields  map[string]any `json:"fields"`
}

// completeAnswered completes a gate with its outputs, which are limited like those of any node.
func (m *Machine) completeAnswered(
	now time.Time, id string, ports map[string]json.RawMessage, attempt int, trust wire.Trust,
) {
	out := node.Output{Ports: ports}
	if bad := m.checkOutputSize(node.Effect, out); bad != nil {
		m.failNode(now, id, bad, attempt, trust)
		return
	}
	m.emitCompletion(now, id, out, trust)
}

// openInterrupt records a question.
func (m *Machine) openInterrupt(now time.Time, at interrupt.Origin, r interrupt.Request, trust wire.Trust) {
	_, events := interrupt.Open(at, r, now, trust.Meet(m.nodeTrust(at.NodeID)))
	m.Emit(now, events...)
}

// suspendAsking suspends the first node whose model asked a question and whose effect has ended.
func (m *Machine) suspendAsking(now time.Time) bool {
	for _, step := range m.plan.Graph.Steps {
		id := step.Node.ID
		n := m.st.Nodes[id]
		if n != nil && !m.handedOut[id] && m.Suspend(now, id) {
			return true
		}
	}
	return false
}

// Suspend suspends a node until its model's questions are answered; false if there are none.
func (m *Machine) Suspend(now time.Time, id string) bool {
	delete(m.handedOut, id) // the answer may have arrived before the suspension
	q, n := m.st.Open(id), m.st.Nodes[id]
	if q == nil || n.Status != runstate.NodeRunning && n.Status != runstate.NodeStopped {
		return false
	}
	m.emitData(now, wire.EventNodeSuspended, id, q.Trust, suspendedPayload{
		NodeID: id, InterruptID: q.InterruptID, Kind: q.Kind, Key: q.Key,
	})
	return true
}

type suspendedPayload struct {
	NodeID      string         `json:"nodeId"`
	InterruptID string         `json:"interruptId"`
	Kind        interrupt.Kind `json:"kind"`
	Key         string         `json:"key"`
}

// Resolve records the result of an answer to a node's interrupt. If the interrupt stays open, that
// is a note and the event of an override, else the node's continuation.
func (m *Machine) Resolve(now time.Time, id string, d interrupt.Decision) {
	if !d.Outcome.Resolves() {
		m.Emit(now, d.Events...)
		if d.Note != nil {
			m.rememberNote(wire.Note{Said: strictjson.Render(d.Note)})
		}
		return
	}
	// The model continues after all answers, and the next attempt at its time.
	waits := m.st.OpenCount(id) > 1 || m.st.Nodes[id].Status == runstate.NodeRetrying
	for _, e := range d.Events {
		if e.Type != wire.EventNodeResumed || !waits {
			m.Emit(now, e)
		}
	}
	m.pending.wake = true
	switch n := m.st.Nodes[id]; {
	case d.Failure != nil:
		m.failNode(now, id, d.Failure, n.Attempt, d.Trust)
	case m.plan.Types[n.TypeID].Class == node.Effect:
		if q := m.st.Latest(id); q.IsUnknown() {
			m.resolveUnknown(now, id, d)
			return
		}
		m.holdEffect(id) // the model is called again with the answer
	default:
		m.completeAnswered(now, id, d.Outputs(), n.Attempt, d.Trust)
	}
}

// questionTimeout is the time limit for answers to the questions of a node's model.
func (m *Machine) questionTimeout(id string) time.Duration {
	if limit := m.step(id).Node.Questions().Timeout; limit != nil {
		return *limit
	}
	return m.limits.QuestionTimeout
}

// DeclinePolicy is what happens to a node if the answer to its open question is declined; empty if
// the question cannot be declined, because no model asks it.
func (m *Machine) DeclinePolicy(q *runstate.Interrupt) workflow.DeclinePolicy {
	n := m.st.Nodes[q.NodeID]
	if q.Kind != interrupt.Clarification || n == nil || m.plan.Types[n.TypeID].Class != node.Effect {
		return ""
	}
	return m.step(q.NodeID).Node.Questions().OnDecline
}

// escalateOrExpire handles a due timer of a waiting node: it escalates the question to the next
// level, or ends it. The same append records the level and moves the timer, so each level occurs
// once.
func (m *Machine) escalateOrExpire(now time.Time, id string) {
	if i := m.st.Open(id); i != nil {
		if e, ok := i.Escalate(now); ok {
			m.Emit(now, e)
			return
		}
	}
	m.expireInterrupt(now, id)
}

// expireInterrupt ends an interrupt without an answer in time. A node that waits without an
// interrupt is partial: the history of its fork ends within the answer, and the rest is missing.
func (m *Machine) expireInterrupt(now time.Time, id string) {
	if i := m.st.Open(id); i != nil {
		m.Resolve(now, id, i.TimeOut(now))
		return
	}
	m.failUnanswered(now, id)
}
