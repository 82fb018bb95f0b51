package engine

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/quarantine"
)

// Redactor takes secrets out of JSON documents before they are appended.
type Redactor interface {
	// Redact returns the documents scrubbed, in order; changed reports that any
	// of them had to be. With registered it refuses while the run is not registered. An
	// error means that nothing may be appended.
	Redact(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) (out [][]byte, changed bool, err error)
}

// Secrets are the keys that tenants bring for their runs.
type Secrets interface {
	// Open tells the redactor what a run's ref names; it registers the run.
	Open(ctx context.Context, tenant, runID, ref string) error
	// Close has them forgotten.
	Close(ctx context.Context, tenant, runID string) error
}

// Acceptor runs the accept pipeline and records what it accepts.
type Acceptor interface {
	// Accept records an envelope, and req.Preceding before its events, in one frame.
	Accept(ctx context.Context, run subject.Run, head frame.Head, boundary wire.Trust, req model.AcceptRequest) (Accepted, error)
}

// Accepted is the pipeline's decision and where the run's log ends now.
type Accepted struct {
	Outcome model.Outcome
	Head    frame.Head
	Events  []wire.Event
	// Preceding is what was recorded before Events of what the request had to tell: all of
	// it, or nothing.
	Preceding []wire.Event
}

// Definitions finds the document a run is pinned to.
type Definitions interface {
	ByDigest(ctx context.Context, digest string) (*definition.Entry, error)
}

// Quarantine records the runs that cannot be loaded or continued.
type Quarantine interface {
	// Add has a run checked again later; see Executor.Readmit. The run may be taken off the
	// queue once it returns.
	Add(ctx context.Context, r subject.Run, why quarantine.Cause) error
	// Holds reports whether a run is quarantined, and not back in the queue.
	Holds(ctx context.Context, r subject.Run) (bool, error)
}

// Children starts runs for nodes.
type Children interface {
	// StartChild starts a run, or finds that it was started before. Errors of a code say
	// why there can be no such run, unless they ask to try again.
	StartChild(ctx context.Context, c create.Child) error
}

// Models executes a model node.
type Models interface {
	Run(ctx context.Context, t model.Task, j model.Journal) model.Result
}
