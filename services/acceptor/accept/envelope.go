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
	// MaxPayloadBytes is the largest payload taken, the base64 of an asset left
	// out: that has a bound of its own.
	MaxPayloadBytes = 1 << 20
	// MaxPayloadDepth is how deep a payload may be nested.
	MaxPayloadDepth = 64

	maxEnvelopeBytes = MaxPayloadBytes + 16<<10 // the members around the payload
	maxEnvelopeDepth = MaxPayloadDepth + 1
	maxIDLength      = 128
	maxTypeLength    = 256
)

// Kinds that every host advertises and no contract refuses (OpenWOP envelope
// contract §3.1).
const (
	KindClarificationRequest = "clarification.request"
	KindSchemaRequest        = "schema.request"
	KindSchemaResponse       = "schema.response"
	KindError                = "error"
)

// The protocol's content kinds (OpenWOP envelope contract §3.1).
const (
	KindImage   = "media.image"
	KindAudio   = "media.audio"
	KindFile    = "media.file"
	KindSurface = a2ui.Kind
)

// Universals lists the four universal kinds.
func Universals() []string {
	return []string{KindClarificationRequest, KindSchemaRequest, KindSchemaResponse, KindError}
}

// IsUniversal reports whether a kind is one of the four.
func IsUniversal(kind string) bool {
	switch kind {
	case KindClarificationRequest, KindSchemaRequest, KindSchemaResponse, KindError:
		return true
	}
	return false
}

// Request is one envelope in its context.
type Request struct {
	Place

	// Document is the AIEnvelope, as it came.
	Document []byte
	// NodeID is the node that asked the model; it wins over the envelope's own.
	NodeID string
	// Contract is the node's; nil: no gate.
	Contract *Contract
	// Mode says what becomes of the node of a gated envelope; empty: fail-node.
	Mode RefusalMode
	// Boundary is the trust of the run as a whole; empty: trusted.
	Boundary wire.Trust
	// Registration says whose secrets must be registered with the redactor before
	// anything is accepted (OpenWOP envelope contract §11).
	Registration wire.Registration
	// Untrusted says that nothing in the run is trusted, whatever the envelope's tag
	// says: nobody has followed the taint of what it was made of.
	Untrusted bool
	Counters  Counters
	// ApprovalContext says that the envelope is bound to an approval.
	ApprovalContext bool
	// Answer says which part of the model's answer it is; zero: all of it.
	Answer wire.AnswerPart
	// Preceding is what the model call has to tell besides. It is recorded together with the
	// envelope's events, before them, or not at all.
	Preceding []wire.Draft
}

// Contract is what a node lets a model emit besides the universal kinds.
type Contract struct{ Accepts []string }

// RefusalMode says what becomes of a refused envelope's node.
type RefusalMode string

// The two modes (OpenWOP envelope contract §7).
const (
	FailNode       RefusalMode = "fail-node"
	DiscardAndWarn RefusalMode = "discard-and-warn"
)

// Counters are the envelopes that count so far, against their limits. A nil
// counter does not limit.
type Counters struct {
	EnvelopesPerTurn    *Counter
	SchemaRounds        *Counter
	ClarificationRounds *Counter
}

// Counter is how many there are, and how many there may be.
type Counter struct {
	Current int `json:"current"`
	Cap     int `json:"cap"`
}

// envelope is an AIEnvelope whose shape was checked.
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

// meta are the members of EnvelopeMeta that the pipeline looks at.
type meta struct {
	ContentTrust wire.Trust      `json:"contentTrust"`
	TS           string          `json:"ts"`
	Traceparent  string          `json:"traceparent"`
	Rendering    json.RawMessage `json:"rendering"`
}

// integer is a JSON number that JSON Schema calls an integer: 1, 1.0 and 1e0
// are the same (OpenWOP envelope contract §26 case 7). Beyond int64 it is
// capped: no version is that high.
type integer int64

// UnmarshalJSON reads a number whose size the shape check has bounded.
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
