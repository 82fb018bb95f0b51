package model

import (
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Journal is a node's access to the run's log. The run's only writer serves its calls one at a
// time.
type Journal interface {
	// Record appends drafts durably, in one frame.
	Record(ctx context.Context, drafts ...wire.Draft) error
	// Accept passes a complete envelope to the accept pipeline at the run's head.
	Accept(ctx context.Context, req AcceptRequest) (Outcome, error)
}

// AcceptRequest is an envelope with the context of its node.
type AcceptRequest struct {
	NodeID   string
	Envelope []byte
	Contract *workflow.EnvelopeContract
	// TurnCount counts the envelopes of this turn accepted before.
	TurnCount int
	// Answer is its part of the model's answer.
	Answer wire.AnswerPart
	// SchemaRounds counts the failed rounds of this emission.
	SchemaRounds int
	// Clarifications counts the node's clarification requests accepted before.
	Clarifications int
	// QuestionTimeout is the time limit for answers to the model's questions; 0 means none.
	QuestionTimeout time.Duration
	// Traceparent is the trace context of the node's attempt; empty for none.
	Traceparent string
	// Preceding are the call's own events. provider.usage precedes the envelope's events (OpenWOP
	// envelope contract §14.5). They are appended in one frame with these, or not at all: see
	// Outcome.Preceded.
	Preceding []wire.Draft
}

// Outcome is the accept pipeline's decision: an EnvelopeOutcome.
type Outcome struct {
	Status       wire.EnvelopeStatus `json:"status"`
	Reason       string              `json:"reason"`
	EnvelopeID   string              `json:"envelopeId"`
	CapKind      string              `json:"capKind"`
	AllowedKinds []string            `json:"allowedKinds"`
	Gate         *Gate               `json:"gate"`
	Details      []json.RawMessage   `json:"details"`
	// Payload is the recorded payload and Sequence the sequence of its event. They are not members
	// of the document.
	Payload  json.RawMessage `json:"-"`
	Sequence int             `json:"-"`
	// Hints are the recorded hints.
	Hints wire.Hints `json:"-"`
	// Preceded means that AcceptRequest.Preceding was appended. Otherwise the events go with the
	// node's next frame: the envelope was refused, or recorded before.
	Preceded bool `json:"-"`
}

// Gate describes the contract that refused an envelope.
type Gate struct {
	RefusedType   string           `json:"refusedType"`
	AcceptedTypes []string         `json:"acceptedTypes"`
	RefusalMode   wire.RefusalMode `json:"refusalMode"`
}

// Schemas provides envelope kinds and limits.
type Schemas interface {
	// Kind returns an envelope kind; ok is false for an unknown one.
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
	// MaxInlineBytes limits the size of an asset within an event.
	MaxInlineBytes int
}

// Assets reads the assets that the host stores.
type Assets interface {
	// Load returns the asset at a URL, for a run; ours is false if the URL is not of this host. Errors:
	// fault.NotFound for an asset of another tenant, or of a run that is not related to this one;
	// fault.ServiceUnavailable.
	Load(ctx context.Context, run subject.Run, url string) (a Asset, ours bool, err error)
}

// Asset is a stored image, sound or file.
type Asset struct {
	// MIME is its type; empty if unknown.
	MIME string
	Data []byte
}

// Models looks providers up by id.
type Models interface {
	Lookup(id string) (provider.Provider, bool)
	IDs() []string
}

// Scrubber removes secrets from streamed text.
type Scrubber interface {
	// Open starts a text of the run. The caller closes it.
	Open(ctx context.Context) (Scrub, error)
}

// Scrub is one streamed text.
type Scrub interface {
	// Push returns the text that can be shown after the piece. With last, it returns the rest.
	Push(piece string, last bool) (string, error)
	Close()
}
