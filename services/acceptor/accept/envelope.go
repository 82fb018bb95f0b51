package accept

import (
	"encoding/json"
	"math"
	"math/big"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/wire"
)

// Bounds of an envelope, checked before anything is decoded (OpenWOP envelope
// contract §26 case 5).
const (
	// MaxPayloadBytes limits a payload. The base64 of an asset is not counted; it has
	// its own limit, Policy.MaxMediaBytes.
	MaxPayloadBytes = 1 << 20
	// MaxPayloadDepth limits the nesting of a payload.
	MaxPayloadDepth = 64

	maxEnvelopeBytes = MaxPayloadBytes + 16<<10 // the members around the payload
	maxEnvelopeDepth = MaxPayloadDepth + 1
	maxIDLength      = 128
	maxTypeLength    = 256
)

// Kinds that every host advertises and no contract refuses (OpenWOP envelope
// contract §3.1).
const (
	KindClarificationRequest = wire.KindClarificationRequest
	KindSchemaRequest        = wire.KindSchemaRequest
	KindSchemaResponse       = wire.KindSchemaResponse
	KindError                = wire.KindError
)

// The protocol's content kinds (OpenWOP envelope contract §3.1).
const (
	KindImage   = "media.image"
	KindAudio   = "media.audio"
	KindFile    = "media.file"
	KindSurface = a2ui.Kind
)

// Request is one envelope in its context.
type Request struct {
	Target

	// Document is the AIEnvelope, unchanged.
	Document []byte
	// NodeID is the node that called the model; it overrides the envelope's nodeId.
	NodeID string
	// Contract is the node's; nil accepts every advertised kind.
	Contract *Contract
	// Mode is what happens to the node of a gated envelope; empty means fail-node.
	Mode RefusalMode
	// Boundary is the trust of the run as a whole; empty means trusted.
	Boundary wire.Trust
	// Registration lists whose secrets must be registered with the redactor before
	// anything is accepted (OpenWOP envelope contract §11).
	Registration wire.Registration
	// Untrusted overrides the envelope's own tag: the caller did not track the taint
	// of the model's input.
	Untrusted bool
	Counters  Counters
	// QuestionTimeoutMs is the time limit for answers to the envelope's questions; 0 means none.
	QuestionTimeoutMs int64
	// ApprovalContext: the envelope is bound to an approval.
	ApprovalContext bool
	// NoConversation: the run has no conversation that a surface could continue.
	NoConversation bool
	// Answer is the part of the model's answer that the envelope is; zero means all.
	Answer wire.AnswerPart
	// Preceding are further events of the model call. They are recorded in the same
	// frame as the envelope's events, before them.
	Preceding []wire.Draft
}

// Contract lists the kinds that a node accepts in addition to the universal kinds.
type Contract struct{ Accepts []string }

// RefusalMode is what happens to the node of a refused envelope.
type RefusalMode = wire.RefusalMode

// The two modes (OpenWOP envelope contract §7).
const (
	FailNode       = wire.FailNode
	DiscardAndWarn = wire.DiscardAndWarn
)

// Counters are the envelopes that count so far, against their limits. A nil
// counter does not limit.
type Counters struct {
	EnvelopesPerTurn    *Counter
	SchemaRounds        *Counter
	ClarificationRounds *Counter
}

// Counter is a count and its limit.
type Counter struct {
	Current int `json:"current"`
	Cap     int `json:"cap"`
}

// envelope is an AIEnvelope after the shape step.
type envelope struct {
	Type          string          `json:"type"`
	SchemaVersion integer         `json:"schemaVersion"`
	EnvelopeID    string          `json:"envelopeId"`
	CorrelationID string          `json:"correlationId"`
	NodeID        string          `json:"nodeId"`
	Payload       json.RawMessage `json:"payload"`
	Meta          json.RawMessage `json:"meta"`
	Partial       partial         `json:"partial"`
}

type partial struct {
	IsPartial bool `json:"isPartial"`
}

// meta are the members of EnvelopeMeta that the pipeline reads.
type meta struct {
	ContentTrust wire.Trust      `json:"contentTrust"`
	TS           string          `json:"ts"`
	Traceparent  string          `json:"traceparent"`
	Label        string          `json:"label"`
	Rendering    json.RawMessage `json:"rendering"`
}

// integer is a JSON number that JSON Schema calls an integer: 1, 1.0 and 1e0
// are equal (OpenWOP envelope contract §26 case 7). Larger numbers than int64 are
// capped, since no version is that high.
type integer int64

// UnmarshalJSON reads a number whose length the shape step has limited.
func (n *integer) UnmarshalJSON(b []byte) error {
	r, ok := new(big.Rat).SetString(string(b))
	switch {
	case !ok || !r.IsInt():
		return &json.UnmarshalTypeError{Value: "number", Offset: 0}
	case !r.Num().IsInt64():
		*n = math.MaxInt64
	default:
		*n = integer(r.Num().Int64())
	}
	return nil
}
