package runstate

import (
	"bytes"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// ExecutorLost is the reason of an attempt that ended because its dispatcher stopped. Such attempts
// count neither as retries of the node nor as executions of the run.
const ExecutorLost = "executor_lost"

// MaxLost is how many dispatchers a node may lose before further losses count as its own failures.
// Without the limit, a node whose answers crash the dispatcher would keep crashing dispatchers
// until
// its run times out.
const MaxLost = 30

// NoCapacity is the reason of an attempt whose peer had no capacity for the call. The wait uses up
// neither a retry of the node nor an execution of the run.
const NoCapacity = "no_capacity"

// ModelFailed is the reason of an attempt whose model failed and after which the next model of the
// node's onError.models is called. The list is short, so such attempts use up neither a retry of the
// node nor an execution of the run.
const ModelFailed = "model_failed"

// Branched is the reason of an attempt of a branch that starts in place of one that the copied
// history contains in part. It uses up neither a retry of the node nor an execution of the run.
const Branched = "branched"

// nextModel returns the model that the next attempt calls; nil for the node's own.
func (p payload) nextModel() *wire.NextModel {
	if p.LastError == nil || p.LastError.Details["reason"] != ModelFailed {
		return nil
	}
	doc, err := json.Marshal(p.LastError.Details["next"])
	next := &wire.NextModel{}
	if err != nil || json.Unmarshal(doc, next) != nil {
		return nil // an unreadable model is none
	}
	return next
}

func (p payload) lacksCapacity() bool {
	return p.LastError != nil && p.LastError.Details["reason"] == NoCapacity
}

func (p payload) lost() bool {
	return p.LastError != nil && p.LastError.Details["reason"] == ExecutorLost
}

// Due returns when the node's timer fires; the zero time if its start is unreadable.
func (n *Node) Due() time.Time {
	t, err := time.Parse(wire.TimeLayout, n.Since)
	if err != nil {
		return time.Time{}
	}
	return t.Add(time.Duration(n.wait()) * time.Millisecond)
}

// wait returns the milliseconds from Since to the end of the node's delay or time limit; 0 means no
// timer.
func (n *Node) wait() int64 {
	switch {
	case n.Status.Terminal():
		return 0
	case n.DelayMs > 0:
		return n.DelayMs
	case n.Status == NodeRunning:
		return n.TimeoutMs
	default:
		return 0 // a suspended node's time limit starts again when it resumes
	}
}

// Due returns when the run must be checked without an external trigger: its next timer or the end
// of its time limit. ok is false if there is neither.
func (s *State) Due() (due time.Time, ok bool) {
	if _, n, has := s.Timer(); has && !n.Due().IsZero() {
		due, ok = n.Due(), true
	}
	if end, _, runs := s.Deadline(time.Duration(s.Record.DurationMs) * time.Millisecond); runs && (!ok || end.Before(due)) {
		due, ok = end, true
	}
	return due, ok
}

// Deadline returns when the run's time limit ends if it does not wait in between. Time spent paused
// or waiting for an answer does not count (OpenWOP host contract §12 no. 41), and delays do not
// count toward the host's limit. wish is an additional limit; 0 means none. limit is the one that
// ends first. ok is false while no time counts.
func (s *State) Deadline(wish time.Duration) (at time.Time, limit time.Duration, ok bool) {
	started, err := time.Parse(wire.TimeLayout, s.StartedAt)
	if err != nil || s.Status != wire.StatusRunning {
		return time.Time{}, 0, false
	}
	if wish > 0 {
		at, limit, ok = started.Add(s.idle+wish), wish, true
	}
	if work := time.Duration(s.Record.WorkMs) * time.Millisecond; work > 0 && s.restSince == "" {
		if end := started.Add(s.idle + s.rest + work); !ok || end.Before(at) {
			at, limit, ok = end, work, true
		}
	}
	return at, limit, ok
}

// Apply folds one more event into the state. Events at or before the last applied sequence are
// ignored, so that a repeated delivery changes nothing.
func (s *State) Apply(e wire.Event) {
	if e.Sequence < s.Next {
		return
	}
	s.Next, s.LastAt = e.Sequence+1, e.Timestamp
	s.EngineVersion = max(s.EngineVersion, e.Engine())
	if s.Status.Terminal() {
		return
	}
	var p payload
	p.read(e.Payload)
	if p.NodeID == "" {
		p.NodeID = e.NodeID
	}
	s.applyRun(e, p)
	s.applyNode(e, p)
	s.applyEnvelope(e, p)
	s.applyTrust(e, p)
	s.applyChannel(e)
	s.applyInterrupt(e)
	s.applyChild(e, p.NodeID)
	s.updateWaiting(e.Timestamp)
	if f := s.Record.Fork; f != nil && s.Next == f.Ends() {
		for _, said := range f.Said {
			s.Remember(wire.Note{Said: said})
		}
		s.holdAll()
	}
}

// applyTrust lowers a node's trust to that of its events. It never rises, neither with another
// attempt nor when the log is folded again (OpenWOP envelope contract §12).
func (s *State) applyTrust(e wire.Event, p payload) {
	if n := s.Nodes[p.NodeID]; n != nil && e.ContentTrust == wire.Untrusted {
		n.Trust = wire.Untrusted
	}
}

func (s *State) applyRun(e wire.Event, p payload) {
	if isRunEvent(e.Type) && !mayFollow(s.Status, e.Type) {
		return
	}
	switch e.Type {
	case wire.EventRunStarted:
		s.Status, s.StartedAt = wire.StatusRunning, e.Timestamp
	case wire.EventRunPaused:
		s.pause(e, p)
	case wire.EventRunResumed:
		s.Status, s.PausedAt = wire.StatusRunning, ""
	case wire.EventRunCompleted:
		s.Status, s.CompletedAt, s.Outputs = wire.StatusCompleted, e.Timestamp, bytes.Clone(p.Outputs)
	case wire.EventRunFailed:
		s.Status, s.CompletedAt, s.Error = wire.StatusFailed, e.Timestamp, p.Error
	case wire.EventRunCancelled:
		s.Status, s.CompletedAt = wire.StatusCancelled, e.Timestamp
	case wire.EventVariableChanged:
		if p.Next == nil {
			delete(s.Variables, p.Name)
			return
		}
		s.Variables[p.Name] = p.Next
		s.Tainted[p.Name] = e.ContentTrust == wire.Untrusted
	case wire.EventProviderUsage:
		s.applyUsage(p)
	case wire.EventLogAppended:
		s.applyCost(e, p)
	case wire.EventVersionPinned:
		s.applyPin(p)
	}
}

func (s *State) applyUsage(p payload) {
	s.Cost.Calls++
	s.Cost.InputTokens += p.InputTokens
	s.Cost.OutputTokens += p.OutputTokens
	s.Cost.Provider, s.Cost.Model = p.Provider, p.Model
	if p.CostUSD != nil {
		s.Cost.USD += *p.CostUSD
		s.Cost.PricedCalls++
	}
	if p.NodeID != "" {
		s.node(p.NodeID).Rounds++
	}
}

func (s *State) applyNode(e wire.Event, p payload) {
	switch e.Type {
	case wire.EventNodeStarted:
		n := s.node(p.NodeID)
		spared, began := n.Spared, n.Began
		if began == "" {
			began = e.Timestamp
		}
		if n.Status == NodeStopped && p.Attempt > n.Attempt {
			spared++
		}
		was := n.Status
		s.endDelay(n)
		*n = Node{
			Status: was, TypeID: p.TypeID, Attempt: p.Attempt, Since: e.Timestamp, Began: began, DelayMs: p.DelayMs, TimeoutMs: p.TimeoutMs,
			Clarifications: n.Clarifications, Trust: n.Trust, Fallback: n.Fallback, Spared: spared, Lost: n.Lost,
			Waits: n.Waits, Next: n.Next,
		}
		s.move(n, NodeRunning)
		if n.DelayMs > 0 {
			n.rests = true
			s.resting++
		}
		s.Executions++
	case wire.EventModelSubstituted:
		s.node(p.NodeID).Fallback = &modelgate.Model{Provider: p.FallbackProvider, Model: p.FallbackModel}
	case wire.EventPromptComposed:
		n := s.node(p.NodeID)
		n.Prompt = &Prompt{}
		_ = json.Unmarshal(e.Payload, n.Prompt) // an unreadable payload counts as an empty one
		n.Prompt.Rounds = n.Rounds
	case wire.EventNodeCompleted:
		n := s.end(e, p, NodeCompleted)
		n.Outputs = p.outputs()
	case wire.EventNodeFailed:
		n := s.end(e, p, NodeFailed)
		n.Error = p.Error
	case wire.EventNodeRetried:
		s.applyRetried(e, p)
	case wire.EventNodeSkipped:
		s.end(e, p, NodeSkipped)
	case wire.EventNodeCancelled:
		s.end(e, p, NodeCancelled)
	case wire.EventNodeSuspended:
		n := s.end(e, p, NodeSuspended)
		n.DelayMs = s.answerDueMs(p.NodeID, e.Timestamp) // a model's questions precede the event
	case wire.EventNodeResumed:
		n := s.end(e, p, NodeRunning)
		n.Rounds, n.Retries, n.Chunked, n.Waits, n.Held = 0, nil, false, 0, false // the model is called again, with the answer
	case wire.EventOutputChunk, wire.EventAgentReasoningDelta:
		s.node(p.NodeID).Chunked = true
	case wire.EventEnvelopeRetryAttempted:
		n := s.node(p.NodeID)
		n.Retries = append(n.Retries, Retry{Attempt: p.Attempt, Reason: p.Reason, Detail: p.PreviousError, Sequence: e.Sequence})
	case wire.EventEnvelopeNLToFormat:
		n := s.node(p.NodeID)
		n.Retries = append(n.Retries, Retry{Reason: ReasonProse, Sequence: e.Sequence})
	case wire.EventClarificationRequested:
		s.node(p.NodeID).Clarifications++
	}
}

func (s *State) applyRetried(e wire.Event, p payload) {
	left := s.node(p.NodeID).timeLeft(e.Timestamp)
	n := s.end(e, p, NodeRetrying)
	n.Error, n.Attempt, n.DelayMs = p.LastError, p.Attempt, p.DelayMs
	n.Fallback = nil // each attempt passes the gate again
	next := p.nextModel()
	switch {
	case next != nil:
		n.Next, n.Waits = next, 0
		n.Spared++
		s.Executions--
	case p.lacksCapacity():
		n.Waits++
		n.TimeoutMs = left
		n.Spared++
		s.Executions--
	case p.Reason == Branched:
		n.Spared++
		s.Executions--
	case p.lost():
		if n.Lost++; n.Lost <= MaxLost {
			n.Spared++
			s.Executions--
		}
	default:
		n.Waits, n.Next = 0, nil
	}
}

// timeLeft returns what is left at an instant of a running attempt's time limit, at least 1 ms; 0
// means no limit.
func (n *Node) timeLeft(at string) int64 {
	since, err := time.Parse(wire.TimeLayout, n.Since)
	now, err2 := time.Parse(wire.TimeLayout, at)
	if n.TimeoutMs <= 0 || err != nil || err2 != nil {
		return n.TimeoutMs
	}
	return max(n.TimeoutMs-now.Sub(since).Milliseconds(), 1)
}

// TimeLeft returns what is left of the time limit of an attempt that waits for capacity, at least
// 1 ms; 0 means no limit. Waits count against the limit.
func (n *Node) TimeLeft(now time.Time) int64 {
	return n.timeLeft(wire.FormatTime(now))
}

// end applies an event that ends or suspends the running attempt.
func (s *State) end(e wire.Event, p payload, status NodeStatus) *Node {
	n := s.node(p.NodeID)
	n.Since, n.DelayMs = e.Timestamp, 0
	s.move(n, status)
	return n
}

func (s *State) applyEnvelope(e wire.Event, p payload) {
	if e.CausationID == "" {
		return
	}
	v := s.Envelopes[e.CausationID]
	if v == nil {
		v = &Envelope{NodeID: e.NodeID}
		s.Envelopes[e.CausationID] = v
	}
	v.EventIDs = append(v.EventIDs, e.EventID)
	recorded := v.Payload != nil
	switch e.Type {
	case wire.EventArtifactCreated:
		v.Kind, v.ID, v.Payload, v.Answer = p.ArtifactType, p.ArtifactID, p.Payload, p.Answer
		v.Hints = wire.Hints{Label: p.Label, Rendering: p.Rendering}
	case wire.EventLogAppended:
		v.applyLogged(p.Fields)
	case wire.EventClarificationRequested: // its payload is that of the question
		v.Kind, v.ID, v.Answer, v.Sequence = p.Envelope.EnvelopeType, p.Envelope.EnvelopeID, p.Envelope.Answer, e.Sequence
		v.InterruptID = p.InterruptID
	}
	if !recorded && v.Payload != nil {
		v.Sequence = e.Sequence
	}
}

// applyLogged records an envelope without an artifact. Other log entries, such as a warning about a
// discarded envelope, have no outcome "accepted".
func (v *Envelope) applyLogged(fields json.RawMessage) {
	var logged loggedEnvelope
	if json.Unmarshal(fields, &logged) != nil || logged.Outcome != "accepted" {
		return
	}
	v.Kind, v.ID, v.Payload, v.Logged = logged.EnvelopeType, logged.EnvelopeID, logged.Payload, true
	v.Answer, v.Hints = logged.Answer, logged.Hints
}

// loggedEnvelope is an envelope as events without an artifact record it.
type loggedEnvelope struct {
	EnvelopeType string          `json:"envelopeType"`
	EnvelopeID   string          `json:"envelopeId"`
	Outcome      string          `json:"outcome"`
	Answer       wire.AnswerPart `json:"answer"`
	Payload      json.RawMessage `json:"payload"`
	wire.Hints
}
