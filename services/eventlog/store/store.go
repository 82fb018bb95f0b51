// Package store is the port to the read model's storage: one row per run, and the frames of the log
// as they were appended.
//
// Everything in a store follows from the run log. A damaged or lost store is emptied and refilled,
// never repaired.
//
// Several writers may fill one store, each following the same log from Tail. Applying a batch that
// another writer has applied changes nothing. A batch builds on what its writer has applied and
// read before; one that does not fit the store's state fails with ErrMoved.
package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/tally"
	"waybill.dev/waybill/services/eventlog/words"
)

// ErrNotFound means that the store has no run with the key.
var ErrNotFound = errors.New("run not in store")

// ErrDamaged means that the store's content cannot be trusted, so it must be rebuilt from the log.
var ErrDamaged = errors.New("store damaged")

// ErrMoved means that the store is not in the state this writer left it: another writer emptied it, or its
// database lost its last batches. It is an ErrDamaged without cost: Rebuild empties nothing, and
// Tail returns where to resume the log. Until Rebuild, every call may return it.
var ErrMoved = fmt.Errorf("%w: it has moved", ErrDamaged)

// Key identifies a run of a tenant.
type Key struct{ Tenant, RunID string }

// Run is the row of one run. Times are in wire.TimeLayout; empty if not reached.
type Run struct {
	Key
	WorkflowID  string
	Status      wire.Status
	CreatedAt   string
	StartedAt   string
	CompletedAt string
	ErrorCode   string
	Tags        []string
	// Head is the sequence of the last event; -1 if none yet.
	Head int
	// Pos and Hash are the log position and the hash of the last frame.
	Pos  uint64
	Hash string
	// DueMs is when the run's next timer fires, in Unix milliseconds; 0 means no timer.
	DueMs int64
	// Asks is the number of the run's open questions.
	Asks int
	// LastEventAt is the time of the last event, or else of the run's creation. Waits describes
	// what the run waits for, as JSON (project.Waits); empty if nothing.
	LastEventAt, Waits string
	// Owner is the dispatcher process that owns the run; zero if the run has ended.
	Owner Owner
	Facts Facts
	// Damage describes the damage of the run's log; empty if none. The row and its frames then cover
	// the log up to the damage.
	Damage string
	// New marks a row that is written for the first time. It is not stored.
	New bool
}

// Owner is a dispatcher process that owns a run. The zero Owner means none.
type Owner struct {
	Process string
	Epoch   uint64 // 0 when the log has no epochs
	Since   string // in wire.TimeLayout: when the log stored the first frame of this owner and epoch
}

// RecordFirst is the First of the frame with a run's record.
const RecordFirst = -1

// Frame is an appended frame of a run, or a part of one with many events. The body of the record's
// frame is a JSON object; every other body is the JSON array of the events from First to Last.
// Frames without events are not stored.
type Frame struct {
	Key
	First int
	Last  int
	Types []wire.EventType
	Body  []byte
}

// Mark links a run to a value that lists filter by. Marks are permanent.
type Mark struct {
	Key
	// CreatedAt is the creation time of the run, which determines its position in lists.
	CreatedAt string
	Name      MarkName
	Value     string
}

// MarkName is the kind of a mark.
type MarkName string

// The names of marks.
const (
	MarkKind     MarkName = "kind"     // of an envelope in the run
	MarkProvider MarkName = "provider" // whose model was called
	MarkModel    MarkName = "model"    // that was called
	MarkAnswered MarkName = "answered" // the day in UTC on which a question of the run was answered
)

// Text is words of a run's contents, which lists find it by.
type Text struct {
	Key
	CreatedAt string
	Words     []string
}

// MergeTexts returns one text for each run, with its first words.Max words.
func MergeTexts(all []Text) []Text {
	var out []Text
	at := map[Key]int{}
	for _, t := range all {
		n, ok := at[t.Key]
		if !ok {
			n = len(out)
			at[t.Key] = n
			out = append(out, Text{Key: t.Key, CreatedAt: t.CreatedAt})
		}
		out[n].Words = words.Union(out[n].Words, t.Words, words.Max)
	}
	return out
}

// Substitution is a call for which the model gate replaced the model (OpenWOP envelope contract
// §16.3), as recorded in the run's log.
type Substitution struct {
	Key
	Sequence           int
	At                 string // in wire.TimeLayout
	NodeID             string
	Original, Fallback modelgate.Model
	Missing            []modelgate.Capability
}

// Tail is the position of a store in the log.
type Tail struct {
	Pos  uint64 // position of the last applied frame; 0 if none
	Hash string // hash of that frame, to identify the log
}

// Batch is applied together or not at all.
type Batch struct {
	// Runs are the rows after the batch, each run once and none at a position beyond Tail.
	Runs   []Run
	Frames []Frame
	// Substitutions are those of the frames. Marks are those of the frames' runs; the store may
	// have some of them already.
	Marks         []Mark
	Substitutions []Substitution
	// Texts are the words that the frames add to their runs; empty unless runs are searched by words.
	Texts []Text
	// Tallies are what the frames add to the tallies of their workflows.
	Tallies []tally.Delta
	// Sealed are runs whose frames are removed, after those of the batch were added: the cold store has
	// them.
	Sealed []Key
	// Erased are runs to remove with everything that belongs to them. None of them is in Runs.
	Erased []Erasure
	Tail   Tail
}

// Erasure names everything that a store has of a run. A run that the store does not have is ignored.
type Erasure struct {
	Key
	CreatedAt     string
	Tags          []string
	Marks         []Mark
	Substitutions []Substitution
}

// Writer applies the log to the store.
type Writer interface {
	// Tail returns the end of the last applied batch. Errors: ErrDamaged, ErrMoved.
	Tail(ctx context.Context) (Tail, error)
	// Apply stores a batch that continues where this writer's Tail or last Apply ended. Stored
	// frames, marks and substitutions are unchanged, except those of erased runs, and neither a row nor the tail goes back to an
	// earlier position, so that applying a batch again, or after another writer, changes nothing. Of
	// the tallies, those of frames up to the stored tail are ignored. When
	// Apply returns, the bytes of erased runs are overwritten as far as the database allows.
	// Errors: ErrDamaged, ErrMoved.
	Apply(ctx context.Context, b Batch) error
	// Rebuild empties the store, in any state, unless it has moved since this writer checked
	// (ErrMoved): of several writers that find the same damage, only one empties the store. The old
	// content is moved aside for diagnosis.
	Rebuild(ctx context.Context) error
}

// Reader reads runs and frames.
type Reader interface {
	// Run returns the row of a run. Errors: ErrNotFound, ErrDamaged.
	Run(ctx context.Context, key Key) (Run, error)
	// Frames returns the run's frames in order, starting with the one that holds event from
	// (RecordFirst: with the record), until they hold at least limit events or PageBytes. Errors:
	// ErrDamaged.
	Frames(ctx context.Context, key Key, from, limit int) ([]Frame, error)
}

// PageBytes limits the bodies of one answer of Frames; the first frame is always included.
const PageBytes = 8 << 20

// Timer is the next timer of a run. Timers are ordered by these fields; the zero Timer is before
// all.
type Timer struct {
	DueMs         int64
	Tenant, RunID string
}

// Lister reads across runs.
type Lister interface {
	// List returns rows of a tenant in the order of the query. Errors: ErrDamaged.
	List(ctx context.Context, q Query) ([]Run, error)
	// Due returns runs of all tenants with a timer due before an instant in Unix milliseconds, in
	// the order of their timers, starting after one. Errors: ErrDamaged.
	Due(ctx context.Context, beforeMs int64, after Timer, limit int) ([]Run, error)
	// Owned returns active runs of all tenants that a process owns, ordered by key and starting
	// after one; the zero Key starts at the first. Errors: ErrDamaged.
	Owned(ctx context.Context, process string, after Key, limit int) ([]Run, error)
	// Substitutions returns those of a tenant since an instant in wire.TimeLayout, newest first.
	// Errors: ErrDamaged.
	Substitutions(ctx context.Context, tenant, since string, limit int) ([]Substitution, error)
}

// Query filters a list; empty fields do not filter.
type Query struct {
	Tenant     string
	Status     wire.Status
	WorkflowID string
	Tag        string
	ErrorCode  string
	// Kind, Provider and Model select runs with such a mark.
	Kind, Provider, Model string
	// AnsweredOn selects runs with a question that was answered on this day.
	AnsweredOn string
	// Since selects runs created then or later, Until those created before; in wire.TimeLayout.
	Since, Until string
	// MinCost selects runs that cost at least this many US dollars; nil does not filter.
	MinCost *float64
	// WaitingSince selects runs that have been waiting since this time or longer; in
	// wire.TimeLayout.
	WaitingSince string
	// Words are prefixes, separated by spaces: selects runs with a word for each of them, in the order by
	// creation time.
	Words string
	// Asking selects runs with an open question.
	Asking bool
	// Sort is the order of the list: descending unless Ascending.
	Sort      Sort
	Ascending bool
	// After is the last row of the previous page; the zero Place is the start.
	After Place
	Limit int
}

// Validate checks the status, the order, and that words come with the order by creation time.
func (q Query) Validate() error {
	switch {
	case q.Status != "" && !slices.Contains(wire.Statuses(), q.Status):
		return fault.OneOf("status", wire.Statuses())
	case q.Sort != SortCreated && !slices.Contains(Sorts(), q.Sort):
		return fault.OneOf("sort", Sorts())
	case q.Words != "" && q.Sort != SortCreated:
		return fault.InvalidQuery("sort", "runs that are found by text are listed by creation time only")
	}
	return nil
}

// Marks returns the marks that runs must have, by name.
func (q Query) Marks() []Mark {
	var out []Mark
	for _, m := range []Mark{
		{Name: MarkKind, Value: q.Kind},
		{Name: MarkProvider, Value: q.Provider},
		{Name: MarkModel, Value: q.Model},
		{Name: MarkAnswered, Value: q.AnsweredOn},
	} {
		if m.Value != "" {
			out = append(out, m)
		}
	}
	return out
}

// Place is a row's position in a tenant's list. In a list by creation time new runs come before every
// position, so paging visits each run once. In others a run may move while a reader pages.
type Place struct {
	CreatedAt, RunID string
	// Value is the value that the list is ordered by, as a string, int64 or float64; nil if the run
	// has none.
	Value any
}

// Store combines all interfaces of this package.
type Store interface {
	Writer
	Reader
	Lister
	FactsWriter
	Counter
	Ender
	TallyReader
	Close() error
}
