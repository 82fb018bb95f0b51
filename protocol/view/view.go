// Package view holds the folded view of a run: its model answers with the gates they passed, its
// timeline, and its tokens and cost. The event log folds it from the run's events; commands and the
// console render it.
//
// The view repeats no content. A payload or a text is in the event that the view names. An unknown
// value is absent, never 0.
package view

// Run is the view of a run as of one of its events.
type Run struct {
	RunID     string `json:"runId"`
	CreatedAt string `json:"createdAt"`
	// Sequence is the last event of the view; -1: none.
	Sequence int `json:"sequence"`
	// Answers are the node executions that concern a model, in the order of their start.
	Answers  []*Execution `json:"answers"`
	Timeline Timeline     `json:"timeline"`
	Cost     Cost         `json:"cost"`
}

// Tone classifies an outcome for display.
type Tone string

// The tones.
const (
	Good Tone = "good"
	Bad  Tone = "bad"
	Open Tone = "open"
	Note Tone = "note"
)

// Story is an outcome in one sentence.
type Story struct {
	Tone     Tone   `json:"tone"`
	Headline string `json:"headline"`
	// Code is the error code of a failure.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// EventRef names an event of the run.
type EventRef struct {
	EventID  string `json:"eventId"`
	Sequence int    `json:"sequence"`
	Type     string `json:"type"`
}

// Result is the state of a node execution.
type Result string

// The results.
const (
	ResultOpen      Result = "open"
	ResultWaiting   Result = "waiting"
	ResultCompleted Result = "completed"
	ResultFailed    Result = "failed"
	ResultRetried   Result = "retried"
	ResultBranched  Result = "branched" // a branch starts within it, and the node runs again
	ResultCancelled Result = "cancelled"
)

// Execution is one execution of a node, with its model calls.
type Execution struct {
	Story

	NodeID string `json:"nodeId"`
	TypeID string `json:"typeId,omitempty"`
	// Number counts the executions of the node, from 1.
	Number int `json:"execution"`
	// Turn is the form of the answer if the host chose it: payload or envelopes.
	Turn string `json:"turn,omitempty"`
	// Choice is why this model was called.
	Choice       string        `json:"choice,omitempty"`
	Substitution *Substitution `json:"substitution,omitempty"`
	Insufficient *Insufficient `json:"insufficient,omitempty"`
	Calls        []*Call       `json:"calls"`
	Result       Result        `json:"result"`
	Error        *Error        `json:"error,omitempty"`
	// Exhausted is the number of attempts after which the host gave up.
	Exhausted int `json:"exhaustedAfter,omitempty"`
	// From and To are the sequences of its first and last event.
	From int `json:"from"`
	To   int `json:"to"`
}

// Model names a model of a provider.
type Model struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Substitution is a model that was replaced before it was called.
type Substitution struct {
	From    Model    `json:"from"`
	To      Model    `json:"to"`
	Missing []string `json:"missing"`
	// Hidden means that the host does not disclose the fallback model.
	Hidden bool     `json:"hidden"`
	Event  EventRef `json:"event"`
}

// Insufficient is a model that was not called because it lacks a capability.
type Insufficient struct {
	Provider          string   `json:"provider"`
	Model             string   `json:"model"`
	Missing           []string `json:"missing"`
	FallbackAttempted bool     `json:"fallbackAttempted"`
	Event             EventRef `json:"event"`
}

// Error is the error of a node.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Cause is the reason of a model call.
type Cause string

// The causes.
const (
	CauseFirst       Cause = "first"
	CauseRetry       Cause = "retry"
	CauseProse       Cause = "prose-fallback"
	CauseNextTurn    Cause = "next-turn"
	CauseAfterAnswer Cause = "after-answer"
	CauseHandedIn    Cause = "handed-in"
)

// Call is one model call.
type Call struct {
	// Ordinal counts the calls of an execution; Attempt does not count further turns.
	Ordinal int   `json:"call"`
	Attempt int   `json:"attempt"`
	Cause   Cause `json:"cause"`
	// Because is the failure that caused a retry.
	Because *Failure `json:"because,omitempty"`
	// End and Tone describe the end of the call.
	End  string `json:"end"`
	Tone Tone   `json:"tone"`
	// Prompt is the sequence of prompt.composed with the messages as sent; nil if it was not recorded.
	Prompt *int `json:"prompt,omitempty"`
	// Thoughts are the sequences of agent.reasoned.
	Thoughts []int `json:"thoughts,omitempty"`
	// Partial is the sequence of the chunk with the latest valid part of the answer, while it arrives.
	Partial *int `json:"partial,omitempty"`
	// FirstMs is the time from the start of the call to its first text, TookMs to its end.
	FirstMs *int64 `json:"firstMs,omitempty"`
	TookMs  *int64 `json:"tookMs,omitempty"`
	// TokensPerSecond is the rate after the first text.
	TokensPerSecond *float64    `json:"tokensPerSecond,omitempty"`
	Usage           *Usage      `json:"usage,omitempty"`
	Truncated       *Truncation `json:"truncated,omitempty"`
	Refusal         *Refusal    `json:"refusal,omitempty"`
	Recovery        *Recovery   `json:"recovery,omitempty"`
	Failure         *Failure    `json:"failure,omitempty"`
	Envelopes       []*Envelope `json:"envelopes"`
	// From and To are the sequences of its first and last event. Its streamed text is in the
	// output.chunk events of the node between them.
	From int `json:"from"`
	To   int `json:"to"`
}

// Failure is why an answer was rejected.
type Failure struct {
	Reason string `json:"reason"`
	// Words are the reason in words.
	Words  string `json:"words"`
	Detail string `json:"detail,omitempty"`
}

// Truncation is an answer that was cut off.
type Truncation struct {
	StopReason   string `json:"stopReason"`
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// Partial means that a part of the answer was readable.
	Partial bool `json:"partial"`
}

// Refusal is an answer in which the model declined. Its text may be withheld.
type Refusal struct {
	Text     string `json:"text,omitempty"`
	Category string `json:"category,omitempty"`
}

// Recovery is how JSON was extracted from an answer.
type Recovery struct {
	Path string `json:"path"`
	// Words are the path in words.
	Words      string `json:"words"`
	ByteOffset *int64 `json:"byteOffset,omitempty"`
}

// Recovered is how the document of an answer was found.
func Recovered(path string) string {
	switch path {
	case "markdown-fence":
		return "JSON found in a fenced block"
	case "brace-walker":
		return "JSON found in other text"
	case "jsonrepair":
		return "broken JSON repaired"
	case "direct":
		return "the whole answer is JSON"
	default:
		return "JSON found in a string"
	}
}

// Form is what a document was checked as.
type Form string

// The forms. A value only has to satisfy the node's outputSchema.
const (
	FormEnvelope Form = "envelope"
	FormValue    Form = "value"
)

// Outcome is the outcome of a document.
type Outcome string

// The outcomes. A discarded document was refused, and its node continued.
const (
	OutcomeAccepted  Outcome = "accepted"
	OutcomeCached    Outcome = "cached"
	OutcomeRefused   Outcome = "refused"
	OutcomeDiscarded Outcome = "discarded"
)

// Envelope is one document of an answer.
type Envelope struct {
	Story

	// Key names it within the run; without an envelope id it is NODE.EXECUTION.CALL.N.
	Key           string  `json:"key"`
	Form          Form    `json:"form"`
	Outcome       Outcome `json:"outcome"`
	Kind          string  `json:"kind,omitempty"`
	EnvelopeID    string  `json:"envelopeId,omitempty"`
	CorrelationID string  `json:"correlationId,omitempty"`
	Version       string  `json:"version,omitempty"`
	Trust         string  `json:"contentTrust,omitempty"`
	// Index is its position in an answer of Size documents.
	Index *int `json:"index,omitempty"`
	Size  *int `json:"size,omitempty"`
	// Gates has an entry for each of Gates, in their order.
	Gates []Gate `json:"gates"`
	// Events are the events that record it. The first contains its payload.
	Events []EventRef `json:"events"`
}

// Stop returns the gate that refused the document; nil: none did.
func (e *Envelope) Stop() *Gate {
	for i := range e.Gates {
		if e.Gates[i].State == Refused {
			return &e.Gates[i]
		}
	}
	return nil
}

// GateName names a gate of the accept pipeline.
type GateName string

// Gates are the gates in the order of the contract (OpenWOP envelope contract §6).
var Gates = []GateName{"shape", "kind", "payload", "contract", "limits", "redaction", "dedup", "routing"}

// State is the state of a document at a gate.
type State string

// The states. A value passes no gate but the payload's.
const (
	Passed        State = "passed"
	Refused       State = "refused"
	NotReached    State = "not-reached"
	NotApplicable State = "not-applicable"
)

// Gate is a gate and what happened to a document there.
type Gate struct {
	Name  GateName `json:"gate"`
	State State    `json:"state"`
	// Note is a remark on a gate that was passed.
	Note          string    `json:"note,omitempty"`
	Code          string    `json:"code,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	Problems      []Problem `json:"problems,omitempty"`
	RefusedKind   string    `json:"refusedKind,omitempty"`
	AcceptedKinds []string  `json:"acceptedKinds,omitempty"`
}

// Problem is one validation error. It contains no value of the document.
type Problem struct {
	Message string `json:"message"`
	// SchemaPointer is the violated rule of the schema; empty if no rule of it was.
	SchemaPointer string `json:"schemaPointer,omitempty"`
	// InstancePointer is the place in the payload; * matches any element. nil: unknown.
	InstancePointer *string `json:"instancePointer,omitempty"`
}
