// Package lease records which dispatcher processes are alive.
//
// Each process holds one lease: a record in a key-value bucket that it renews by compare-and-set,
// three times per lease duration. The run log says which process owns a run (frame.Ownership); the
// lease shows whether that process may still act on it.
//
// If a process does not renew its record for its duration, another process expires it, also by
// compare-and-set. From then on it cannot renew, so exactly one of the two succeeds: the renewal or
// the expiry. Clocks of two machines are never compared. Each observer measures with its own
// monotonic clock how long a record stayed unchanged. It counts only time in which its own renewals
// succeeded, so that an outage of the store expires no lease. The duration is part of the record:
// dispatchers with different settings are safe.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
)

// Config is the duration of a lease, and the description of its holder.
type Config struct {
	// Duration is the time without a renewal after which another process takes over this one's
	// runs.
	Duration time.Duration
	// Host is the machine or pod, for operators.
	Host string
	// Sole means that no other dispatcher can be running, because this process has exclusive use of
	// the data directory. Leases of earlier processes expire immediately.
	Sole bool
	// NewID returns a unique id for a process; nil uses a random one.
	NewID func() string
}

// Renewals is the number of renewals within the lease duration.
const Renewals = 3

// State of a lease.
type State string

// The states of a lease. Expired and released are final.
const (
	// Held is the state of a process that renews.
	Held State = "held"
	// Draining is Held for a process that completes running effects and takes no new runs.
	Draining State = "draining"
	// Released: the process ended and gave up its runs.
	Released State = "released"
	// Expired: another process found it silent.
	Expired State = "expired"
)

// isOver reports that the process must not act on its runs any more.
func (s State) isOver() bool { return s == Released || s == Expired }

// Record is the lease of one process.
type Record struct {
	Process string `json:"process"`
	Host    string `json:"host,omitempty"`
	State   State  `json:"state"`
	// Started and Renewed are instants of the holder's clock, for people.
	Started time.Time `json:"started"`
	Renewed time.Time `json:"renewed"`
	// DurationMs is the lease duration in milliseconds.
	DurationMs int64 `json:"durationMs"`
	// Runs is how many runs the process was executing.
	Runs int `json:"runs"`
	// By is the process that expired the lease.
	By string `json:"by,omitempty"`
}

// Duration is the lease duration.
func (r Record) Duration() time.Duration { return time.Duration(r.DurationMs) * time.Millisecond }

// Until is when the lease ends unless it is renewed, by its holder's clock.
func (r Record) Until() time.Time { return r.Renewed.Add(r.Duration()) }

// ErrLost means that another process expired this one's lease.
var ErrLost = errors.New("dispatcher lease lost: another dispatcher took over its runs")

const prefix = "dispatcher."

// Table is this process's lease and its view of the others. It is safe for concurrent use.
type Table struct {
	cfg   Config
	store kv.Store
	clock func() time.Time
	log   *slog.Logger
	// runs counts the runs in execution, for the record; nil reports 0.
	runs func() int

	mu       sync.Mutex // guards what follows
	own      Record
	revision uint64
	// until is when this process must stop unless it renews; zero before the first renewal. It has
	// a monotonic reading.
	until time.Time
	// renewals counts successful renewals, and changed is closed and replaced at each change.
	renewals uint64
	changed  chan struct{}
	others   map[string]*observation
	// known reports that others has all leases that existed when Run started.
	known bool
}

// observation is the last observed state of another process's lease.
type observation struct {
	record   Record
	revision uint64
	// at and renewals are the time and the renewal count when the revision was first observed.
	at       time.Time
	renewals uint64
}

// New returns a table for a new process; Open writes its lease.
func New(cfg Config, store kv.Store, clock func() time.Time, log *slog.Logger) *Table {
	if cfg.NewID == nil {
		cfg.NewID = rand.Text
	}
	t := &Table{
		cfg:     cfg,
		store:   store,
		clock:   clock,
		log:     log,
		changed: make(chan struct{}),
		others:  map[string]*observation{},
	}
	t.own = t.newRecord()
	return t
}

// CountRuns sets the function that counts the runs in execution; call it before Open.
func (t *Table) CountRuns(runs func() int) { t.runs = runs }

func (t *Table) newRecord() Record {
	return Record{
		Process:    t.cfg.NewID(),
		Host:       t.cfg.Host,
		State:      Held,
		Started:    t.clock(),
		DurationMs: t.cfg.Duration.Milliseconds(),
	}
}

// Process is the id of this process. It changes when the lease is lost.
func (t *Table) Process() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own.Process
}

// Valid reports that this process may start effects.
func (t *Table) Valid() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isValid(time.Now())
}

func (t *Table) isValid(now time.Time) bool { return now.Before(t.until) }

// Await returns once process may start effects. Errors: ErrLost if it is no longer this
// process, or that of ctx.
func (t *Table) Await(ctx context.Context, process string) error {
	for {
		t.mu.Lock()
		own, valid, changed := t.own.Process == process, t.isValid(time.Now()), t.changed
		t.mu.Unlock()
		switch {
		case !own:
			return ErrLost
		case valid:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// Open writes the lease of this process. Errors: kv.ErrUnavailable.
func (t *Table) Open(ctx context.Context) error { return t.renew(ctx) }

// renew extends the lease. Errors: ErrLost, kv.ErrUnavailable.
func (t *Table) renew(ctx context.Context) error {
	t.mu.Lock()
	r, revision := t.own, t.revision
	t.mu.Unlock()
	sent := time.Now()
	r.Renewed = t.clock()
	if t.runs != nil {
		r.Runs = t.runs()
	}
	next, err := t.write(ctx, r, revision)
	if errors.Is(err, kv.ErrConflict) {
		return t.resolveConflict(ctx, r)
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own.Renewed, t.own.Runs, t.revision = r.Renewed, r.Runs, next
	t.renewals++
	if r.State.isOver() {
		t.until = time.Time{}
	} else {
		t.until = sent.Add(t.cfg.Duration * 9 / 10) // a margin for clocks of different speed
	}
	t.notify()
	return nil
}

func (t *Table) write(ctx context.Context, r Record, revision uint64) (uint64, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("render lease of %s: %w", r.Process, err)
	}
	return t.store.Update(ctx, prefix+r.Process, value, revision)
}

// resolveConflict finds the cause of a conflict: this process's own write whose answer was lost, or
// an expiry.
func (t *Table) resolveConflict(ctx context.Context, mine Record) error {
	r, revision, err := t.read(ctx, mine.Process)
	switch {
	case errors.Is(err, kv.ErrUnavailable):
		return err
	case err == nil && !r.State.isOver():
		t.mu.Lock()
		t.revision = revision
		t.mu.Unlock()
		return fmt.Errorf("%w: the answer to a renewal was lost", kv.ErrUnavailable)
	}
	return ErrLost
}

func (t *Table) read(ctx context.Context, process string) (Record, uint64, error) {
	e, err := t.store.Get(ctx, prefix+process)
	if err != nil {
		return Record{}, 0, err
	}
	r, err := parse(e)
	return r, e.Revision, err
}

func parse(e kv.Entry) (Record, error) {
	var r Record
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return Record{}, fmt.Errorf("lease record %s at revision %d: %w", e.Key, e.Revision, err)
	}
	return r, nil
}

// notify wakes the callers that wait for a change. Call it with the lock.
func (t *Table) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Drain marks the process as draining.
func (t *Table) Drain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own.State == Held {
		t.own.State = Draining
	}
}

// Release gives the lease up: the runs that this process still owns may be taken over
// immediately.
func (t *Table) Release(ctx context.Context) error {
	t.mu.Lock()
	t.own.State = Released
	t.mu.Unlock()
	var err error
	for range releaseTries {
		if err = t.renew(ctx); err == nil || errors.Is(err, ErrLost) {
			break
		}
	}
	return err
}

// releaseTries limits the writes of a release: a renewal may conflict.
const releaseTries = 3

// newIdentity sets a new process id after the lease was lost.
func (t *Table) newIdentity() (lost string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost, state := t.own.Process, t.own.State
	t.own, t.revision, t.until = t.newRecord(), 0, time.Time{}
	t.own.State = state
	t.notify()
	return lost
}
