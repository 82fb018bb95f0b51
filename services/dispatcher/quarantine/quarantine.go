// Package quarantine remembers the runs whose log was found damaged, and puts those whose log
// reads whole again back into the queue: another server may lead it by then, or a backup is in
// place.
//
// A run in here holds no place in the queue, which others need, and no memory of a dispatcher: it is
// a record that all dispatchers share. It was written before the run was taken off the queue, and
// is deleted long after the run was put back, so that a crash anywhere leaves the run in one of
// the two. In both it is only looked at, or handed out, once more than it had to be.
package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Config says how often runs are looked at.
type Config struct {
	// Every is how often the list is read.
	Every time.Duration
	// First is how long a run stays before it is looked at; each time that is not enough it
	// stays twice as long, up to Most.
	First, Most time.Duration
	// AtOnce bounds the runs that are looked at each time.
	AtOnce int
}

// DefaultConfig has a run back within a quarter of an hour after its log was mended (Most, a quarter
// of it more, and Every), and costs a log that nobody mends next to nothing.
func DefaultConfig() Config {
	return Config{Every: 30 * time.Second, First: time.Minute, Most: 11 * time.Minute, AtOnce: 256}
}

// Readmitter puts runs back.
type Readmitter interface {
	// Readmit puts a run into the queue again if its log reads whole. False: it has ended, and
	// nothing is left to do. Errors: frame.ErrDamaged if its log does not read whole,
	// runlog.ErrNotFound if it is gone.
	Readmit(ctx context.Context, r subject.Run) (back bool, err error)
}

// List is the runs in quarantine. It is safe for concurrent use.
type List struct {
	cfg   Config
	store kv.Store
	back  Readmitter
	clock func() time.Time
	log   *slog.Logger
}

// New makes a list; who puts runs back is set by Bind before Run.
func New(cfg Config, store kv.Store, clock func() time.Time, log *slog.Logger) *List {
	return &List{cfg: cfg, store: store, clock: clock, log: log}
}

// Bind says who puts runs back; the executor and the list know each other.
func (l *List) Bind(back Readmitter) { l.back = back }

// entry is what is kept of a run.
type entry struct {
	Tenant     string `json:"tenant"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	// Looks is how often it was looked at, and Next when it is again, in Unix milliseconds.
	Looks int   `json:"looks"`
	Next  int64 `json:"next"`
	// Back: it was put back or has ended, and nobody has found it damaged since.
	Back bool `json:"back,omitempty"`
}

func (e entry) run() subject.Run {
	return subject.Run{Tenant: e.Tenant, WorkflowID: e.WorkflowID, RunID: e.RunID}
}

const prefix = "run."

func keyOf(r subject.Run) string { return prefix + r.Tenant + "." + r.RunID }

// addTries bounds how often an addition races with somebody who looks.
const addTries = 8

// Add remembers a run, whose delivery may be ended after that. A run that was put back and is
// damaged all the same keeps its growing delay. Errors: kv.ErrUnavailable, kv.ErrConflict.
func (l *List) Add(ctx context.Context, r subject.Run) error {
	for range addTries {
		e, revision := entry{Tenant: r.Tenant, WorkflowID: r.WorkflowID, RunID: r.RunID}, uint64(0)
		there, err := l.store.Get(ctx, keyOf(r))
		switch {
		case err == nil:
			revision = there.Revision
			if json.Unmarshal(there.Value, &e) != nil {
				e = entry{Tenant: r.Tenant, WorkflowID: r.WorkflowID, RunID: r.RunID}
			}
		case !errors.Is(err, kv.ErrNotFound):
			return fmt.Errorf("quarantine run %s: %w", r.RunID, err)
		}
		// It is written in any case: whoever has put the run back meanwhile, or takes it off the
		// list, must find that it came again.
		if e.Back = false; e.Next == 0 {
			e.Next = l.next(e)
		}
		if _, err = l.put(ctx, e, revision); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("quarantine run %s: %w", r.RunID, kv.ErrConflict)
}

func (l *List) put(ctx context.Context, e entry, revision uint64) (uint64, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return 0, fmt.Errorf("render quarantine of run %s: %w", e.RunID, err)
	}
	revision, err = l.store.Update(ctx, keyOf(e.run()), value, revision)
	if err != nil {
		return 0, fmt.Errorf("quarantine run %s: %w", e.RunID, err)
	}
	return revision, nil
}

// next is when a run is looked at again. Runs that were found damaged together are not looked
// at together; the id decides, so that nothing is left to chance.
func (l *List) next(e entry) int64 {
	delay := l.cfg.First
	for range e.Looks {
		if delay *= 2; delay >= l.cfg.Most {
			delay = l.cfg.Most
			break
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.RunID))
	return l.clock().Add(delay + delay*time.Duration(h.Sum32()%64)/256).UnixMilli() // up to a quarter more
}

// Run looks at the runs until ctx ends.
func (l *List) Run(ctx context.Context) error {
	for lifecycle.Wait(ctx, l.cfg.Every) {
		l.sweep(ctx)
	}
	return ctx.Err()
}

// sweep looks at the runs whose time has come.
func (l *List) sweep(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, l.cfg.Every)
	defer cancel()
	all, err := kv.List(bounded, l.store, prefix)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Debug("quarantine not read", "error", err)
		}
		return
	}
	looked := 0
	for _, there := range all {
		var e entry
		if err := json.Unmarshal(there.Value, &e); err != nil {
			l.log.Warn("record of a quarantined run not readable", "key", there.Key, "error", err)
			continue
		}
		if e.Next > l.clock().UnixMilli() {
			continue
		}
		if looked++; looked > l.cfg.AtOnce || ctx.Err() != nil {
			return
		}
		l.look(ctx, e, there.Revision)
	}
}

// look has a run put back if that is time. Of several dispatchers that come to it together, the one
// looks that is first to set its next time.
func (l *List) look(ctx context.Context, e entry, revision uint64) {
	if e.Back { // it has been taken up, or waits in the queue, which forgets nobody
		l.lost(ctx, e, l.store.Delete(ctx, keyOf(e.run()), revision))
		return
	}
	e.Looks++
	e.Next = l.next(e)
	revision, err := l.put(ctx, e, revision)
	if err != nil {
		l.lost(ctx, e, err)
		return
	}
	switch back, err := l.back.Readmit(ctx, e.run()); {
	case errors.Is(err, frame.ErrDamaged), errors.Is(err, runlog.ErrNotFound): // which a backup may mend
		return
	case err != nil:
		l.lost(ctx, e, err)
		return
	case back:
		l.log.Info("run put back into the queue: its log reads whole again", "run_id", e.RunID)
	default:
		l.log.Info("run left quarantine: its log reads whole again, and it has ended", "run_id", e.RunID)
	}
	e.Back = true
	_, err = l.put(ctx, e, revision)
	l.lost(ctx, e, err)
}

// lost tells what did not work, unless somebody else has done it. It is tried again.
func (l *List) lost(ctx context.Context, e entry, err error) {
	if err != nil && !errors.Is(err, kv.ErrConflict) && ctx.Err() == nil {
		l.log.Warn("quarantined run not looked at", "run_id", e.RunID, "error", err)
	}
}
