package engine

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// Redactor removes secrets from JSON documents before they are appended.
type Redactor interface {
	// Redact returns the redacted documents in order. changed reports that any of them differs.
	// With registered it fails unless the run is registered. After an error nothing may be
	// appended.
	Redact(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) (out [][]byte, changed bool, err error)
}

// Secrets registers the keys that tenants bring for their runs.
type Secrets interface {
	// Open registers the run and the secret that its ref names with the redactor.
	Open(ctx context.Context, tenant, runID, ref string) error
	// Close unregisters them.
	Close(ctx context.Context, tenant, runID string) error
}

// Acceptor runs the accept pipeline and records what it accepts.
type Acceptor interface {
	// Accept records an envelope in one frame, with req.Preceding before its events.
	Accept(ctx context.Context, run subject.Run, head frame.Head, boundary wire.Trust, req model.AcceptRequest) (Accepted, error)
}

// Accepted is the pipeline's decision and the new head of the run's log.
type Accepted struct {
	Outcome model.Outcome
	Head    frame.Head
	Events  []wire.Event
	// Preceding are the request's preceding events, as recorded before Events: all of them, or
	// none.
	Preceding []wire.Event
}

// Definitions finds the definition that a run is pinned to.
type Definitions interface {
	ByDigest(ctx context.Context, digest string) (*definition.Entry, error)
}

// Quarantine records the runs that cannot be loaded or continued.
type Quarantine interface {
	// Add records a run, which is checked again later; see Executor.Readmit. The run's delivery may
	// be ended once it returns.
	Add(ctx context.Context, r subject.Run, why quarantine.Cause) error
	// Holds reports whether a run is quarantined and was neither enqueued again nor got a frame later.
	// last is the position of its last frame, or 0 if its log is damaged.
	Holds(ctx context.Context, r subject.Run, last uint64) (bool, error)
	// CountFailure counts a failed delivery, and returns the number of consecutive ones.
	CountFailure(ctx context.Context, r subject.Run) (failures int, err error)
	// Enter records that a process is about to execute a run that was delivered before, with the frame
	// at pos.
	Enter(ctx context.Context, r subject.Run, pos uint64, process string, isOver func(process string) (bool, error)) (quarantine.Deaths, error)
	// CountDeath counts a process that died while it owned a run. Deaths before progress grew do not
	// count.
	CountDeath(ctx context.Context, r subject.Run, pos uint64, process string, progress int) (quarantine.Deaths, error)
	// Leave ends an execution without a result.
	Leave(ctx context.Context, r subject.Run, process string) error
	// Forget drops the counts of a run that continues.
	Forget(ctx context.Context, r subject.Run) error
}

// Children starts runs for nodes.
type Children interface {
	// StartChild starts a run, or finds the one that an earlier call started. Coded errors are
	// permanent, except those that allow a retry.
	StartChild(ctx context.Context, c create.Child) error
}

// Models executes a model node.
type Models interface {
	Run(ctx context.Context, t model.Task, j model.Journal) model.Result
}

// Limiter applies the operator's limits of calls.
type Limiter interface {
	// Admit gets a place for the call of a task, until release is called. release is nil without one:
	// the call has no limit, or is refused. reason ends the attempt of a refused call. A place of a
	// process that dies becomes free.
	Admit(ctx context.Context, t model.Task) (release func(), reason *wire.NodeError, err error)
}
