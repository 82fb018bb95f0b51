package snapshot

import (
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
)

// Every is the number of events between two snapshots of a run. A shorter run has none.
const Every = 200

// Limits of the writing of snapshots.
const (
	maxWaiting   = 256              // runs; more are dropped and offered again after their next events
	writers      = 2                // at a time
	writeTimeout = 30 * time.Second // for one snapshot
)

// Result is the outcome of reading or writing a snapshot.
type Result string

// The outcomes.
const (
	Hit         Result = "hit"         // used
	Missing     Result = "missing"     // a run of unknown length has none
	Unavailable Result = "unavailable" // the store did not answer
	Rejected    Result = "rejected"    // damaged, of another version, or not of the log

	Written  Result = "written"
	TooLarge Result = "too_large"
	Dropped  Result = "dropped" // too many runs wait for theirs
	Failed   Result = "failed"
)

// Deps are the collaborators of a keeper.
type Deps struct {
	Log runlog.Reader
	// Store stores the snapshots; nil disables them.
	Store  *Store
	Logger *slog.Logger
	// Done counts outcomes; nil disables it.
	Done func(Result)
}

// Keeper reads and writes snapshots. It is safe for concurrent use.
type Keeper struct {
	deps  Deps
	queue chan subject.Run

	mu sync.Mutex // guards what follows
	// waiting are the queued runs and those in work, by store key; true means that the run has
	// ended.
	waiting map[string]bool
	// skipped are runs whose snapshot could not be stored, by store key, with the event count of
	// the next try. Each try reads the whole log.
	skipped map[string]int
}

// maxSkipped limits the remembered runs.
const maxSkipped = 1024

// New returns a keeper.
func New(d Deps) *Keeper {
	if d.Done == nil {
		d.Done = func(Result) {}
	}
	return &Keeper{
		deps:    d,
		queue:   make(chan subject.Run, maxWaiting),
		waiting: map[string]bool{},
		skipped: map[string]int{},
	}
}

// Disabled returns a keeper without snapshots: every run is folded from its log.
func Disabled(log runlog.Reader) *Keeper { return New(Deps{Log: log}) }
