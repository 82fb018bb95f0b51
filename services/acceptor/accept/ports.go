package accept

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Log is the run log: the source of truth.
type Log = runlog.Log

// Clock returns the current time.
type Clock func() time.Time

// Redactor removes the secrets of a run from documents and texts.
type Redactor interface {
	// Redact returns the same documents and texts, redacted, in order, and the
	// number of secrets replaced. After any error nothing may be recorded or shown;
	// fault.ServiceUnavailable may be retried.
	Redact(ctx context.Context, run subject.Run, in Texts) (out Texts, count int, err error)
}

// Texts are JSON documents, of which every string value and key is redacted, and
// plain strings.
type Texts struct {
	Documents []json.RawMessage
	Strings   []string
	// Registration names the scopes whose secrets must be registered. Redact fails
	// while one of them is not.
	Registration wire.Registration
}

// Kinds is the host's catalogue of envelope kinds. It always has the four universal
// kinds.
type Kinds interface {
	// Find returns an advertised kind.
	Find(name string) (Kind, bool)
	// Names lists all advertised kinds, sorted.
	Names() []string
}

// Kind is an envelope kind as the host advertises it.
type Kind struct {
	Name string
	// Version is the entry in schemaVersions, or Unlisted.
	Version int
	// Payload validates payloads; nil accepts every payload, for a kind without a
	// schema on this host (OpenWOP envelope contract §4, unlisted kind).
	Payload PayloadSchema
}

// Unlisted is the version of a kind that schemaVersions does not list.
const Unlisted = -1

// PayloadSchema validates the payloads of a kind. *schema.Schema implements it.
type PayloadSchema interface {
	// Validate returns the violations of a payload; nil means valid.
	Validate(payload []byte) []schema.Violation
}

// ErrRaced reports that another writer appended to the run first. Nothing was
// recorded.
var ErrRaced = errors.New("run log has moved on")

// Target is the run and the head after which an envelope is to be recorded.
type Target struct {
	Run subject.Run
	// Head is where the run's log ends, as far as the caller has read.
	Head frame.Head
	// Traceparent is the caller's W3C trace context; empty means none.
	Traceparent string
}

// Ledger holds the outcome of every accepted envelope, by correlationId.
type Ledger interface {
	// Lookup returns the record of the correlationId in this run, or nil.
	// Errors: fault.ServiceUnavailable, fault.RunNotFound, fault.RunTerminal.
	Lookup(ctx context.Context, at Target, correlationID string) (*Record, error)
	// Record makes the entry's events durable, all or none. Errors: ErrRaced,
	// fault.ServiceUnavailable.
	Record(ctx context.Context, at Target, e Entry) (*Record, error)
}

// Entry is an accepted envelope to be recorded. All of it is redacted.
type Entry struct {
	Type          string
	EnvelopeID    string
	CorrelationID string
	Trust         wire.Trust
	Payload       json.RawMessage
	// Redactions is how many secrets were replaced.
	Redactions int
	// Preceding are events of the same model call, recorded before the envelope's own.
	Preceding []wire.Draft
	// Drafts are the envelope's own events.
	Drafts []wire.Draft
}

// Record is the ledger's record of an envelope.
type Record struct {
	// Type is the envelope's kind.
	Type string
	// Outcome is the EnvelopeOutcome document, the same bytes every time.
	Outcome json.RawMessage
	// Payload is the payload as recorded.
	Payload json.RawMessage
	// Preceding are the entry's preceding events as recorded; Lookup leaves it empty.
	Preceding []wire.Event
	// Events are the envelope's own events.
	Events []wire.Event
	// Head is a head of the run whose log includes Events.
	Head frame.Head
}
