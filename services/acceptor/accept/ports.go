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

// Clock tells the time.
type Clock func() time.Time

// Redactor takes the secrets of a run out of documents and texts.
type Redactor interface {
	// Redact gives the same documents and texts, scrubbed, in order, and the
	// number of occurrences replaced. Errors: any means that nothing may be
	// recorded or shown; fault.ServiceUnavailable that it may be tried again.
	Redact(ctx context.Context, run subject.Run, in Texts) (out Texts, count int, err error)
}

// Texts are JSON documents, of which every string leaf and key is scrubbed, and
// plain strings.
type Texts struct {
	Documents []json.RawMessage
	Strings   []string
	// Registration has all refused while those whose secrets it names are not registered.
	Registration wire.Registration
}

// Kinds is the host's catalogue of envelope kinds. It always has the universal
// four.
type Kinds interface {
	// Find gives an advertised kind.
	Find(name string) (Kind, bool)
	// Names lists all advertised kinds, sorted.
	Names() []string
}

// Kind is an envelope kind as the host advertises it.
type Kind struct {
	Name string
	// Version is what schemaVersions says, or Unlisted.
	Version int
	// Payload judges payloads; nil: the kind has no schema here, so that its
	// payloads pass (OpenWOP envelope contract §4, unlisted kind).
	Payload PayloadSchema
}

// Unlisted is the version of a kind that schemaVersions does not list.
const Unlisted = -1

// PayloadSchema judges the payloads of a kind. *schema.Schema is one.
type PayloadSchema interface {
	// Validate gives what is wrong with a payload; nil: nothing.
	Validate(payload []byte) []schema.Violation
}

// ErrRaced says that somebody else appended to the run meanwhile. Nothing was
// recorded.
var ErrRaced = errors.New("run log has moved on")

// Place is where in which run an envelope is to be recorded.
type Place struct {
	Run subject.Run
	// Head is where the caller believes the run's log ends.
	Head frame.Head
	// Traceparent is that of whoever hands the envelope in; empty: none.
	Traceparent string
}

// Ledger remembers the outcome of every accepted envelope, by correlationId.
type Ledger interface {
	// Recall gives what was recorded under the correlationId in this run, or nil.
	// Errors: fault.ServiceUnavailable, fault.RunNotFound, fault.RunTerminal.
	Recall(ctx context.Context, at Place, correlationID string) (*Record, error)
	// Record makes the entry's events durable, together or not at all. Errors:
	// ErrRaced, fault.ServiceUnavailable.
	Record(ctx context.Context, at Place, e Entry) (*Record, error)
}

// Entry is an accepted envelope on its way into the ledger. All of it has
// passed the redactor.
type Entry struct {
	Type          string
	EnvelopeID    string
	CorrelationID string
	Trust         wire.Trust
	Payload       json.RawMessage
	// Redactions is how many secrets were replaced.
	Redactions int
	// Preceding is what is told before that which the envelope causes.
	Preceding []wire.Draft
	Drafts    []wire.Draft
}

// Record is what the ledger holds about an envelope.
type Record struct {
	// Type is the envelope's kind.
	Type string
	// Outcome is the EnvelopeOutcome document, the same bytes every time.
	Outcome json.RawMessage
	// Payload is the payload as recorded.
	Payload json.RawMessage
	// Preceding are the entry's, as they were recorded just now; of a record that is
	// recalled there are none.
	Preceding []wire.Event
	// Events are what the envelope caused.
	Events []wire.Event
	// Head is the head of the run that includes Events.
	Head frame.Head
}
