package accept

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Status is the verdict over an envelope; a closed set.
type Status string

// The four statuses (OpenWOP envelope contract §2, EnvelopeOutcome).
const (
	Accepted Status = "accepted"
	Gated    Status = "gated"
	Invalid  Status = "invalid"
	Breached Status = "breached"
)

// Refusal says why an envelope does not count.
type Refusal struct {
	Status Status
	Code   fault.Code
	// Message follows the code in the reason; empty: the reason is the code.
	Message string
	// Details are for Invalid.
	Details []Detail
	// RefusedType, AllowedKinds and Mode are for Gated.
	RefusedType  string
	AllowedKinds []string
	Mode         RefusalMode
	// CapKind, Limit and Observed are for Breached: Observed is what the counter
	// would have become.
	CapKind  string
	Limit    int
	Observed int
}

// Detail is one thing that is wrong (ValidationDetail). It never carries a
// value of the envelope.
type Detail struct {
	InstancePath string `json:"instancePath"`
	SchemaPath   string `json:"schemaPath"`
	Keyword      string `json:"keyword"`
	Message      string `json:"message,omitempty"`
}

// Reason is the sentence of the outcome: it starts with the code, or is exactly
// the code.
func (r *Refusal) Reason() string {
	if r.Message == "" {
		return string(r.Code)
	}
	return string(r.Code) + ": " + r.Message
}

// refusalDocument is a Refusal as an EnvelopeOutcome.
type refusalDocument struct {
	Status       Status    `json:"status"`
	Reason       string    `json:"reason"`
	Details      *[]Detail `json:"details,omitempty"`
	AllowedKinds []string  `json:"allowedKinds,omitempty"`
	Gate         *gate     `json:"gate,omitempty"`
	CapKind      string    `json:"capKind,omitempty"`
}

// gate repeats the refusal the way the base specification spells it (OpenWOP
// envelope contract §24, C3).
type gate struct {
	RefusedType   string      `json:"refusedType"`
	AcceptedTypes []string    `json:"acceptedTypes"`
	RefusalMode   RefusalMode `json:"refusalMode"`
}

// MarshalJSON renders the EnvelopeOutcome document.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	doc := refusalDocument{Status: r.Status, Reason: r.Reason(), CapKind: r.CapKind}
	switch r.Status {
	case Invalid:
		details := append([]Detail{}, r.Details...)
		doc.Details = &details
	case Gated:
		doc.AllowedKinds = r.AllowedKinds
		doc.Gate = &gate{RefusedType: r.RefusedType, AcceptedTypes: r.AllowedKinds, RefusalMode: r.Mode}
	}
	return json.Marshal(doc)
}

// Acceptance is the outcome of an accepted envelope.
type Acceptance struct {
	Status           Status         `json:"status"`
	RecordedEventIDs []string       `json:"recordedEventIds"`
	EnvelopeID       string         `json:"envelopeId"`
	NormalizedMeta   NormalizedMeta `json:"normalizedMeta"`
	// RedactionCount and RedactedPayload are set where redaction was asked to report.
	RedactionCount  *int            `json:"redactionCount,omitempty"`
	RedactedPayload json.RawMessage `json:"redactedPayload,omitempty"`
}

// NormalizedMeta is what the acceptor made of the envelope's meta.
type NormalizedMeta struct {
	ContentTrust wire.Trust `json:"contentTrust"`
}

// NewAcceptance is the outcome of an envelope that caused events.
func NewAcceptance(envelopeID string, trust wire.Trust, events []wire.Event) Acceptance {
	ids := make([]string, 0, len(events))
	for _, e := range events {
		ids = append(ids, e.EventID)
	}
	return Acceptance{Status: Accepted, RecordedEventIDs: ids, EnvelopeID: envelopeID, NormalizedMeta: NormalizedMeta{ContentTrust: trust}}
}

// StatusOf reads the status of an EnvelopeOutcome document; empty if it is none.
func StatusOf(outcome []byte) Status {
	var doc struct{ Status Status }
	_ = json.Unmarshal(outcome, &doc)
	return doc.Status
}
