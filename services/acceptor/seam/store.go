package seam

import (
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Key identifies an outcome. RunID is empty in the seam's own store, and the run of
// persistedDedup in that run's store.
type Key struct{ Tenant, RunID, CorrelationID string }

// StoredOutcome is an outcome with the type of its envelope.
type StoredOutcome struct {
	EnvelopeType string          `json:"envelopeType"`
	Outcome      json.RawMessage `json:"outcome"`
}

// Store stores outcomes beyond a request. Several processes must share it (OpenWOP
// envelope contract §23, distribution).
type Store interface {
	// Load returns the outcome of the key; found is false if there is none.
	Load(ctx context.Context, k Key) (outcome StoredOutcome, found bool, err error)
	// Save stores the outcome if the key has none, and returns the key's outcome.
	Save(ctx context.Context, k Key, outcome StoredOutcome) (StoredOutcome, error)
	// Capability returns the overlay's value of a capability; set is false if the
	// overlay does not have it.
	Capability(ctx context.Context, tenant, name string) (value, set bool, err error)
}

// TestLog is a log of test runs. The runs need not exist.
type TestLog interface {
	// Append adds events at the end of the run's test log and returns them with their
	// sequences.
	Append(ctx context.Context, tenant, runID string, drafts []wire.Draft) ([]wire.Event, error)
	// AppendOnce is Append for the events of an accepted envelope. If the log has the
	// events of an accepted envelope with the same correlationId, it returns those and
	// appends nothing, even when processes race.
	AppendOnce(ctx context.Context, tenant, runID, correlationID string, drafts []wire.Draft) ([]wire.Event, error)
	// Trace adds the span of an accept.
	Trace(ctx context.Context, tenant, runID string, span Span) error
}

// Span is a recorded span.
type Span struct {
	RunID      string         `json:"runId"`
	Name       string         `json:"name"`
	EnvelopeID string         `json:"envelopeId"`
	Attributes map[string]any `json:"attributes"`
	At         time.Time      `json:"at"`
	// Index numbers the spans of a run, from 0.
	Index int `json:"index"`
}

// CapabilityEnvelopes is the capability that an overlay can switch off.
const CapabilityEnvelopes = "host.aiEnvelope.supported"
