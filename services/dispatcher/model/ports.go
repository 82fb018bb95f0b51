package model

import (
	"context"
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Journal is the run's log as a node sees it. Its calls are served one at a
// time by the run's only writer.
type Journal interface {
	// Record appends drafts durably, in one frame.
	Record(ctx context.Context, drafts ...wire.Draft) error
	// Accept hands a complete envelope to the accept pipeline at the run's head.
	Accept(ctx context.Context, req AcceptRequest) (Outcome, error)
}

// AcceptRequest is an envelope in the context of its node.
type AcceptRequest struct {
	NodeID   string
	Envelope []byte
	Contract *workflow.EnvelopeContract
	// TurnCount is how many envelopes of this turn were accepted before.
	TurnCount int
	// Answer says which part of the model's answer it is.
	Answer wire.AnswerPart
	// SchemaRounds is how many rounds of this emission failed before.
	SchemaRounds int
	// Clarifications is how many clarification requests of the node were accepted before.
	Clarifications int
	// Traceparent is that of the node's attempt; empty: none.
	Traceparent string
	// Preceding is what the call has to tell besides: provider.usage precedes the envelope's
	// events (OpenWOP envelope contract §14.5). It is appended in one frame with these if it
	// can be, and else it is not: see Outcome.Preceded.
	Preceding []wire.Draft
}

// Outcome is what the accept pipeline decided: an EnvelopeOutcome.
type Outcome struct {
	Status       wire.EnvelopeStatus `json:"status"`
	Reason       string              `json:"reason"`
	EnvelopeID   string              `json:"envelopeId"`
	CapKind      string              `json:"capKind"`
	AllowedKinds []string            `json:"allowedKinds"`
	Gate         *Gate               `json:"gate"`
	Details      []json.RawMessage   `json:"details"`
	// Payload is the payload as it was recorded, and Sequence that of the event which
	// records it; no members of the document.
	Payload  json.RawMessage `json:"-"`
	Sequence int             `json:"-"`
	// Preceded says that AcceptRequest.Preceding is in the log. Otherwise none of it is, and
	// it goes with what the node tells next: the envelope was refused, or was recorded before.
	Preceded bool `json:"-"`
}

// Gate says which contract refused.
type Gate struct {
	RefusedType   string           `json:"refusedType"`
	AcceptedTypes []string         `json:"acceptedTypes"`
	RefusalMode   wire.RefusalMode `json:"refusalMode"`
}

// Schemas answers what the payload of a kind must look like.
type Schemas interface {
	// Kind gives the schema of an envelope kind; ok is false for an unknown one.
	Kind(ctx context.Context, name string) (k Kind, ok bool, err error)
	// Limits are the host's envelope limits.
	Limits(ctx context.Context) (Limits, error)
}

// Kind is an envelope kind as the host advertises it.
type Kind struct {
	Name    string
	Version int
	Schema  json.RawMessage
}

// Limits are the root limits of the host that bound envelopes.
type Limits struct {
	EnvelopesPerTurn    int
	SchemaRounds        int
	ClarificationRounds int
	// MaxInlineBytes is the largest asset that may stand in an event.
	MaxInlineBytes int
}

// Models finds the provider of a call.
type Models interface {
	Lookup(id string) (provider.Provider, bool)
	IDs() []string
}

// Scrubber takes secrets out of text that arrives in pieces.
type Scrubber interface {
	// Open starts a text of the run; Close ends it.
	Open(ctx context.Context) (Scrub, error)
}

// Scrub is one text in pieces.
type Scrub interface {
	// Push gives what may be shown after the piece; with last, all that is left.
	Push(piece string, last bool) (string, error)
	Close()
}
