// Package ladder says how far each answer of a model came: which gates of the accept
// pipeline it passed, and which one stopped it (OpenWOP envelope contract §6). It reads
// nothing but the events of a run; the console draws the same from the same events.
package ladder

import "waybill.dev/waybill/protocol/fault"

// Gate is one of the pipeline.
type Gate string

// Gates are all of them, in the order of the contract.
var Gates = []Gate{"shape", "kind", "payload", "contract", "limits", "redaction", "dedup", "routing"}

// State is what became of an answer at a gate.
type State string

// The states.
const (
	Passed        State = "passed"
	Refused       State = "refused"
	NotReached    State = "not reached"
	NotApplicable State = "not applicable" // a value is held to its schema only
)

// Rung is a gate, and what became of an answer there.
type Rung struct {
	Gate  Gate  `json:"gate"`
	State State `json:"state"`
	// Note is what is worth saying of a gate that was passed.
	Note          string     `json:"note,omitempty"`
	Code          fault.Code `json:"code,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	Problems      []Problem  `json:"problems,omitempty"`
	RefusedKind   string     `json:"refusedKind,omitempty"`
	AcceptedKinds []string   `json:"acceptedKinds,omitempty"`
}

// Problem is one thing that was wrong. It has no value of the model's.
type Problem struct {
	Message string `json:"message"`
	// SchemaPointer is the rule of the schema that was broken, InstancePointer where in
	// the payload; * stands for any element.
	SchemaPointer   string `json:"schemaPointer,omitempty"`
	InstancePointer string `json:"instancePointer,omitempty"`
}

// Outcome is what became of a document.
type Outcome string

// The outcomes. A discarded one was refused, and its node went on.
const (
	OutcomeAccepted  Outcome = "accepted"
	OutcomeCached    Outcome = "cached"
	OutcomeRefused   Outcome = "refused"
	OutcomeDiscarded Outcome = "discarded"
)

// Event names one of the run.
type Event struct {
	EventID  string `json:"eventId"`
	Sequence int    `json:"sequence"`
	Type     string `json:"type"`
}

// Envelope is one document that a model gave.
type Envelope struct {
	// Key names it within the run, also where it never got an id: NODE.EXECUTION.CALL.N.
	Key string `json:"key"`
	// Value: it is no envelope, and only has to satisfy the node's outputSchema.
	Value         bool    `json:"value,omitempty"`
	Outcome       Outcome `json:"outcome"`
	Kind          string  `json:"kind,omitempty"`
	EnvelopeID    string  `json:"envelopeId,omitempty"`
	CorrelationID string  `json:"correlationId,omitempty"`
	Version       string  `json:"version,omitempty"`
	Trust         string  `json:"contentTrust,omitempty"`
	Rungs         []Rung  `json:"gates"`
	Events        []Event `json:"events"`
}

// Stop is the gate that refused; nil: none did.
func (e *Envelope) Stop() *Rung {
	for i := range e.Rungs {
		if e.Rungs[i].State == Refused {
			return &e.Rungs[i]
		}
	}
	return nil
}

// Failure is why a model was asked again.
type Failure struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// Truncation is an answer that was cut off.
type Truncation struct {
	StopReason   string `json:"stopReason"`
	OutputTokens int    `json:"outputTokens,omitempty"`
}

// Refusal is a model that declined. Its text may be withheld.
type Refusal struct {
	Text     string `json:"text,omitempty"`
	Category string `json:"category,omitempty"`
}

// Call is one time that a model was asked.
type Call struct {
	// Ordinal counts the calls of an execution; Attempt does not count further turns.
	Ordinal   int         `json:"call"`
	Attempt   int         `json:"attempt"`
	Cause     string      `json:"cause"`
	Model     string      `json:"model,omitempty"`
	Truncated *Truncation `json:"truncated,omitempty"`
	Refusal   *Refusal    `json:"refusal,omitempty"`
	Recovery  string      `json:"recovery,omitempty"`
	Failure   *Failure    `json:"failure,omitempty"`
	Envelopes []*Envelope `json:"envelopes"`

	used bool // its usage is known: what is said next is another call's
}

// The causes of a call.
const (
	causeFirst       = "first"
	causeRetry       = "retry"
	causeProse       = "prose-fallback"
	causeNextTurn    = "next-turn"
	causeAfterAnswer = "after-answer"
	causeHandedIn    = "handed-in"
)

// Error is what a node failed with.
type Error struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Execution is one time that a node was carried out.
type Execution struct {
	NodeID string `json:"nodeId"`
	TypeID string `json:"typeId,omitempty"`
	Number int    `json:"execution"`
	// Substituted and Insufficient say what came of the node's model before it was asked.
	Substituted  string  `json:"substituted,omitempty"`
	Insufficient string  `json:"insufficient,omitempty"`
	Calls        []*Call `json:"calls"`
	// Result is open, waiting, completed, failed, retried or cancelled.
	Result    string `json:"result"`
	Error     *Error `json:"error,omitempty"`
	Exhausted int    `json:"exhaustedAfter,omitempty"`
}
