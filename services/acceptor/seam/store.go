package seam

import (
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Key names an outcome. RunID is empty in the seam's own memory, and the run of
// persistedDedup in that run's store.
type Key struct{ Tenant, RunID, CorrelationID string }

// Kept is an outcome with the type of its envelope.
type Kept struct {
	EnvelopeType string          `json:"envelopeType"`
	Outcome      json.RawMessage `json:"outcome"`
}

// Store keeps what must outlive a request. With several processes it must be
// shared between them (OpenWOP envelope contract §23, distribution).
type Store interface {
	// Load gives the outcome kept under the key; found is false if there is none.
	Load(ctx context.Context, k Key) (kept Kept, found bool, err error)
	// Save keeps an outcome unless one is kept under the key already, and gives the
	// one that is kept then.
	Save(ctx context.Context, k Key, kept Kept) (Kept, error)
	// Capability gives what the overlay says about a capability of the host; set
	// is false when it says nothing.
	Capability(ctx context.Context, tenant, name string) (value, set bool, err error)
}

// TestLog is the log of runs that need not exist.
type TestLog interface {
	// Append places events at the end of the run's test log and gives them as placed.
	Append(ctx context.Context, tenant, runID string, drafts []wire.Draft) ([]wire.Event, error)
	// AppendOnce is Append for what an accepted envelope causes: if the log has what
	// one of the same correlationId has caused, that is given and nothing is placed,
	// whoever is at it at the same time.
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

// CapabilityEnvelopes is the capability whose overlay switches accepting off.
const CapabilityEnvelopes = "host.aiEnvelope.supported"
