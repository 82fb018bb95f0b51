// Package store is the port to the read model's storage: one row for each run,
// and the frames of the log as they were appended.
//
// Everything in a store follows from the run log. A store that is damaged or
// gone is emptied and filled again; nobody repairs it.
//
// Several writers may fill one store, each following the same log on from Tail.
// What one of them has applied, the others apply again, and it changes nothing. A
// batch builds on what its writer has applied and read before; one that would not
// fit what is there gets ErrMoved.
package store

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// ErrNotFound says that the store has no run of the key.
var ErrNotFound = errors.New("run not in store")

// ErrDamaged says that what the store holds cannot be trusted: it must be
// rebuilt from the log.
var ErrDamaged = errors.New("store damaged")

// ErrMoved says that the store is not where this writer left it: another writer
// emptied it, or its database came back without its last batches. It is an
// ErrDamaged that costs nothing: Rebuild then empties nothing, and Tail says from
// where to follow the log again. Until Rebuild, every call may answer it.
var ErrMoved = fmt.Errorf("%w: it has moved", ErrDamaged)

// Key names a run of a tenant.
type Key struct{ Tenant, RunID string }

// Run is the row of one run. Times are in wire.TimeLayout, empty when not
// reached.
type Run struct {
	Key
	WorkflowID  string
	Status      wire.Status
	CreatedAt   string
	StartedAt   string
	CompletedAt string
	ErrorCode   string
	Tags        []string
	// Head is the sequence of the last event; -1: none yet.
	Head int
	// Pos and Hash are the log position and the hash of the last frame.
	Pos  uint64
	Hash string
	// DueMs is when the run's next timer fires, in Unix milliseconds; 0: it has none.
	DueMs int64
	// Asks is how many of the run's questions wait for somebody.
	Asks int
	// LastEventAt is when the last event was recorded, or else the run was created. Waits says
	// what the run waits for, as JSON (project.Waits); empty: for nothing.
	LastEventAt, Waits string
	// Owner is the dispatcher process that owns the run, unless the run has ended.
	Owner Owner
	// Damage says what is wrong with the run's log; empty: nothing. The row and
	// its frames then stand for the log up to the damage.
	Damage string
	// New marks a row that is written for the first time. It is not stored.
	New bool
}

// Owner is a dispatcher process that owns a run. The zero Owner is none.
type Owner struct {
	Process string
	Epoch   uint64 // 0 when the log has no epochs
	Since   string // in wire.TimeLayout: when the log got the first frame of this owner and epoch
}

// RecordFirst is the First of the frame that holds a run's record.
const RecordFirst = -1

// Frame is a frame of a run as it was appended, or a part of one with many events.
// The body of the record's frame is a JSON object, every other body is the JSON array
// of the events from First to Last. Frames without events are not stored.
type Frame struct {
	Key
	First int
	Last  int
	Types []wire.EventType
	Body  []byte
}

// Mark says that a run has to do with something that lists look for. A run keeps its
// marks.
type Mark struct {
	Key
	// CreatedAt is the run's: its place in lists.
	CreatedAt string
	Name      MarkName
	Value     string
}

// MarkName is what a mark is about.
type MarkName string

// The names of marks.
const (
	MarkKind     MarkName = "kind"     // of an envelope that a model gave
	MarkProvider MarkName = "provider" // whose model was called
)

// Substitution is a call for which the model gate has put another model in the place of
// the one that was to be asked (OpenWOP envelope contract §16.3), as its run's log tells.
type Substitution struct {
	Key
	Sequence           int
	At                 string // in wire.TimeLayout
	NodeID             string
	Original, Fallback modelgate.Model
	Missing            []modelgate.Capability
}

// Tail is how much of the log a store holds.
type Tail struct {
	Pos  uint64 // position of the last applied frame; 0: none
	Hash string // its hash, to know the log again
}

// Batch is applied together or not at all.
type Batch struct {
	// Runs are the rows as they are after the batch, each run once and none at a
	// position beyond Tail.
	Runs   []Run
	Frames []Frame
	// Substitutions are those that the frames have brought, and Marks those of the frames'
	// runs, of which the store may have some.
	Marks         []Mark
	Substitutions []Substitution
	Tail          Tail
}

// Writer takes what the log says.
type Writer interface {
	// Tail is where the last applied batch ended. Errors: ErrDamaged, ErrMoved.
	Tail(ctx context.Context) (Tail, error)
	// Apply stores a batch, which goes on from where this writer's Tail or last
	// Apply ended. Frames, marks and substitutions that are stored already stay as they are, and neither a
	// row nor the tail ever goes back to an earlier position, so that applying a
	// batch again, or after another writer, changes nothing. Errors: ErrDamaged,
	// ErrMoved.
	Apply(ctx context.Context, b Batch) error
	// Rebuild empties the store, whatever state it is in, unless it has moved
	// since this writer looked (ErrMoved): of several writers that find the same
	// damage, one empties. What was there is kept aside for whoever wants to know
	// what happened.
	Rebuild(ctx context.Context) error
}

// Reader reads runs and frames.
type Reader interface {
	// Run gives the row of a run. Errors: ErrNotFound, ErrDamaged.
	Run(ctx context.Context, key Key) (Run, error)
	// Frames gives the run's frames in order, beginning with the one that holds
	// event from (RecordFirst: with the record), until they hold at least limit
	// events or PageBytes. Errors: ErrDamaged.
	Frames(ctx context.Context, key Key, from, limit int) ([]Frame, error)
}

// PageBytes bounds the bodies of one answer of Frames; the first frame always
// comes, however large.
const PageBytes = 8 << 20

// Timer is the next timer of a run. Timers are in the order of these fields; the zero Timer is
// before all.
type Timer struct {
	DueMs         int64
	Tenant, RunID string
}

// Lister reads across runs.
type Lister interface {
	// List gives rows of a tenant, newest first. Errors: ErrDamaged.
	List(ctx context.Context, q Query) ([]Run, error)
	// Due gives runs of all tenants that have a timer due before an instant in
	// Unix milliseconds, in the order of their timers, from behind one on. Errors: ErrDamaged.
	Due(ctx context.Context, beforeMs int64, after Timer, limit int) ([]Run, error)
	// Owned gives active runs of all tenants that a process owns, ordered by key and starting
	// after one; the zero Key starts at the first. Errors: ErrDamaged.
	Owned(ctx context.Context, process string, after Key, limit int) ([]Run, error)
	// Substitutions gives those of a tenant since an instant in wire.TimeLayout, newest
	// first. Errors: ErrDamaged.
	Substitutions(ctx context.Context, tenant, since string, limit int) ([]Substitution, error)
}

// Query filters a list; empty fields do not filter.
type Query struct {
	Tenant     string
	Status     wire.Status
	WorkflowID string
	Tag        string
	ErrorCode  string
	// Kind and Provider keep runs with such a mark.
	Kind, Provider string
	// Since keeps runs that were created then or later; in wire.TimeLayout.
	Since string
	// Asking keeps runs with a question that waits for somebody.
	Asking bool
	// After is the last row of the page before; the zero Place begins.
	After Place
	Limit int
}

// Marks are those that runs have to have, by name.
func (q Query) Marks() []Mark {
	var out []Mark
	for _, m := range []Mark{{Name: MarkKind, Value: q.Kind}, {Name: MarkProvider, Value: q.Provider}} {
		if m.Value != "" {
			out = append(out, m)
		}
	}
	return out
}

// Place is a row's place in a tenant's list. New runs come before every place,
// so a walk through the pages sees each run once.
type Place struct{ CreatedAt, RunID string }

// Store is all of it.
type Store interface {
	Writer
	Reader
	Lister
	Close() error
}
