package accept

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Status is the verdict over an envelope; a closed set.
type Status = wire.EnvelopeStatus

// The four statuses (OpenWOP envelope contract §2, EnvelopeOutcome).
const (
	Accepted = wire.EnvelopeAccepted
	Gated    = wire.EnvelopeGated
	Invalid  = wire.EnvelopeInvalid
	Breached = wire.EnvelopeBreached
)

// Refusal is the reason why an envelope was not accepted.
type Refusal struct {
	Status Status
	Code   fault.Code
	// Message follows the code in the reason; empty means the reason is only the code.
	Message string
	// Details are for Invalid.
	Details []Detail
	// RefusedType, AllowedKinds and Mode are for Gated.
	RefusedType  string
	AllowedKinds []string
	Mode         RefusalMode
	// CapKind, Limit and Observed are for Breached. Observed is the count including
	// this envelope.
	CapKind  string
	Limit    int
	Observed int
}

// Detail is one violation (ValidationDetail). It never contains a value of the
// envelope.
type Detail struct {
	InstancePath string `json:"instancePath"`
	SchemaPath   string `json:"schemaPath"`
	Keyword      string `json:"keyword"`
	Message      string `json:"message,omitempty"`
}

// maxRefusalText limits a text of a refusal, in bytes.
const maxRefusalText = 1024

// bound shortens texts that a model wrote, such as the names of members in a path.
func (r *Refusal) bound() {
	texts := []*string{&r.Message, &r.RefusedType}
	for i := range r.Details {
		texts = append(texts, &r.Details[i].InstancePath, &r.Details[i].Message)
	}
	for _, t := range texts {
		if len(*t) > maxRefusalText {
			*t = strings.ToValidUTF8((*t)[:maxRefusalText], "") + "…"
		}
	}
}

// Reason returns the outcome's reason: the code, then the message if there is one.
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

// gate repeats the refusal in the form of the base specification (OpenWOP envelope
// contract §24, C3).
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
	// RedactionCount and RedactedPayload are set if the request includes a report.
	RedactionCount  *int            `json:"redactionCount,omitempty"`
	RedactedPayload json.RawMessage `json:"redactedPayload,omitempty"`
}

// NormalizedMeta is the envelope's meta after the pipeline.
type NormalizedMeta struct {
	ContentTrust wire.Trust `json:"contentTrust"`
}

// NewAcceptance returns the outcome of an accepted envelope and its events.
func NewAcceptance(envelopeID string, trust wire.Trust, events []wire.Event) Acceptance {
	ids := make([]string, 0, len(events))
	for _, e := range events {
		ids = append(ids, e.EventID)
	}
	return Acceptance{
		Status:           Accepted,
		RecordedEventIDs: ids,
		EnvelopeID:       envelopeID,
		NormalizedMeta:   NormalizedMeta{ContentTrust: trust},
	}
}

// StatusOf reads the status of an EnvelopeOutcome document; empty if it has none.
func StatusOf(outcome []byte) Status {
	var doc struct{ Status Status }
	_ = json.Unmarshal(outcome, &doc)
	return doc.Status
}
