package model

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Task is one model node to execute.
type Task struct {
	Tenant, RunID string
	WorkflowID    string
	TypeID        string
	Attempt       int
	Input         node.Input
	Contract      *workflow.EnvelopeContract
	Trust         wire.Trust
	// Clarifications counts the node's clarification requests accepted before.
	Clarifications int
	// QuestionTimeout is the time limit for answers to the model's questions; 0 means none.
	QuestionTimeout time.Duration
	// Waits counts the consecutive waits for the node's model without capacity.
	Waits int
	// Answered are the model's clarification questions and answers, in order.
	Answered []Answered
	// Fallback is the model that replaces the node's own by decision of the gate; nil for none. If
	// the log withholds its name, Needs has it.
	Fallback *modelgate.Model
	Needs    *modelgate.Needs
	// CredentialRef names the tenant's own key; empty uses the host's.
	CredentialRef string
	// Replay means that the run replays another one and must make no external call.
	Replay bool
	// Trace is the run's trace context.
	Trace runspan.Context
	// Recorded maps correlationIds to the envelopes recorded before. It is not empty if the run was
	// claimed again after an answer, or a part of it, was recorded.
	Recorded map[string]Recorded
	// Retries are further calls of this emission announced in the log by a previous owner.
	Retries []Retry
	// Announced is the sequence of the last retry; 0 for none.
	Announced int
	// Composed is the prompt of the attempt that was recorded last; nil for none.
	Composed *runstate.Prompt
	// Rounds counts the attempt's calls whose usage is recorded.
	Rounds int
}

// Answered is a model's clarification question and its answer.
type Answered struct {
	Question, Answer json.RawMessage
	// Others are the accepted envelopes of the answer that asked the question; those of an answer with
	// several questions are listed at the first.
	Others []Recorded
}

// Recorded is an accepted envelope found in the log.
type Recorded struct {
	Kind       string
	EnvelopeID string
	Payload    json.RawMessage
	// Sequence is the sequence of its event.
	Sequence int
	// Answer is its part of the model's answer.
	Answer wire.AnswerPart
	// Hints advise how to show it.
	Hints wire.Hints
}

// Result is the end of a node: events to append first, then outputs or an error.
type Result struct {
	Drafts []wire.Draft
	Output node.Output
	Trust  wire.Trust
	// Err fails the node.
	Err *wire.NodeError
	// Waits means that the node continues after its model's questions are answered.
	Waits bool
	// Interrupted means that the work could not be done by this process. The run is delivered again
	// and the node loses nothing.
	Interrupted error
	// Unsent means, with Interrupted, that no call is in flight: the next one was not sent, and the
	// results of earlier ones are recorded. Continuing repeats nothing.
	Unsent bool
}

// recordTurn adds the form of the answer that the host chose to the end of the node; empty if the node
// names the form.
func (r *Result) recordTurn(form string) {
	if r.Err == nil {
		r.Output.Turn = form
		return
	}
	e := *r.Err
	e.Turn = form
	r.Err = &e
}

// position identifies an envelope of the task's answer by its round and its index within the turn.
func (t *Task) position(round, index int) envelopePosition {
	return envelopePosition{
		runID:    t.RunID,
		nodeID:   t.Input.NodeID,
		attempt:  t.Attempt,
		answered: len(t.Answered),
		round:    round,
		index:    index,
	}
}
