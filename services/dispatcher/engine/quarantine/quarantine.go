// Package quarantine records the runs that cannot be loaded or continued, and enqueues them again
// once they can. For example, another server leads the log, a backup or a definition was restored,
// or a newer dispatcher runs. An operator lists them, retries one, or ends one.
//
// A quarantined run is a record that all dispatchers share. It occupies no place in the queue and
// no memory of a dispatcher. The record is written before the run is taken off the queue, and
// deleted long after the run was enqueued again. A crash at any point therefore leaves the run in
// one of the two, and costs at most one extra check or delivery.
package quarantine

import (
	"cmp"
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
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Config configures the checks.
type Config struct {
	// Interval is how often the list is read.
	Interval time.Duration
	// FirstDelay is the time until the first check. Each failed check doubles it, up to MaxDelay.
	FirstDelay, MaxDelay time.Duration
	// DeathDelay replaces a shorter FirstDelay for a run whose dispatchers died: each check may end
	// another process.
	DeathDelay time.Duration
	// MaxDelayFailing replaces MaxDelay for reasons that a check cannot verify: each check then
	// appends a frame to the run's log.
	MaxDelayFailing time.Duration
	// MaxChecks limits the checks of one interval.
	MaxChecks int
}

// DefaultConfig enqueues a run within a quarter of an hour after its log was repaired: MaxDelay
// plus a quarter of it, plus Interval. Checks of logs that stay damaged cost next to nothing.
func DefaultConfig() Config {
	return Config{
		Interval:        30 * time.Second,
		FirstDelay:      time.Minute,
		MaxDelay:        11 * time.Minute,
		DeathDelay:      time.Hour,
		MaxDelayFailing: 6 * time.Hour,
		MaxChecks:       256,
	}
}

// Readmitter enqueues runs again.
type Readmitter interface {
	// Readmit enqueues a run if it can be loaded; false if it has ended and needs nothing. Errors:
	// frame.ErrDamaged if its log is damaged, runlog.ErrNotFound if it is gone, and others.
	Readmit(ctx context.Context, r subject.Run) (back bool, err error)
}

// List contains the quarantined runs. It is safe for concurrent use.
type List struct {
	cfg        Config
	store      kv.Store
	readmitter Readmitter
	clock      func() time.Time
	log        *slog.Logger
	count      counts
}

// New returns a list; Bind sets the readmitter before Run.
func New(cfg Config, store kv.Store, clock func() time.Time, log *slog.Logger) *List {
	return &List{cfg: cfg, store: store, clock: clock, log: log}
}

// Bind sets the readmitter. The executor and the list depend on each other.
func (l *List) Bind(back Readmitter) { l.readmitter = back }

// entry is the stored record of a run.
type entry struct {
	Tenant     string `json:"tenant"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	// Checks counts the checks. Next is the time of the next one, in Unix milliseconds.
	Checks int   `json:"looks"`
	Next   int64 `json:"next"`
	// Back: the run was enqueued or has ended, and was not quarantined again. Leaving: a check
	// began that may have enqueued it.
	Back    bool `json:"back,omitempty"`
	Leaving bool `json:"leaving,omitempty"`
	// Reason is empty in records of older releases, which only know damaged logs. Since is the time
	// of the first quarantine, Last that of the last one, both in Unix milliseconds. Tries is the
	// number of deliveries before the last quarantine.
	Reason string `json:"reason,omitempty"`
	Since  int64  `json:"since,omitempty"`
	Last   int64  `json:"last,omitempty"`
	Tries  int    `json:"tries,omitempty"`
	// Pos is the position of the run's last frame at the last quarantine; 0 if that is unknown.
	Pos uint64 `json:"pos,omitempty"`

	// Failures counts consecutive failed deliveries. Dead are the processes that died with the run.
	// The first Pardoned of them do not count. Executing is the process that executes a run that was
	// delivered before. Progress is that of the run at the last counted death. See history.go.
	Failures  int      `json:"failures,omitempty"`
	Dead      []string `json:"dead,omitempty"`
	Pardoned  int      `json:"pardoned,omitempty"`
	Executing string   `json:"executing,omitempty"`
	Progress  int      `json:"progress,omitempty"`
	// NotBefore is the earliest next execution, Keep until when the counts are kept, both in Unix
	// milliseconds.
	NotBefore int64 `json:"notBefore,omitempty"`
	Keep      int64 `json:"keep,omitempty"`
}

// due is the time of the next check, or until when a record without a quarantine is kept.
func (e entry) due() int64 {
	if e.Back {
		return max(e.Next, e.Keep)
	}
	return e.Next
}

func (e entry) run() subject.Run {
	return subject.Run{Tenant: e.Tenant, WorkflowID: e.WorkflowID, RunID: e.RunID}
}

const prefix = "run."

func keyOf(r subject.Run) string { return prefix + r.Tenant + "." + r.RunID }

// addTries limits the retries of an addition that races with checks.
const addTries = 8

// Add records a run, whose delivery may be ended after that. A run that was enqueued and is
// quarantined again keeps its growing delay. Errors: kv.ErrUnavailable, kv.ErrConflict.
func (l *List) Add(ctx context.Context, r subject.Run, why Cause) error {
	for range addTries {
		e, revision, err := l.readRecord(ctx, r)
		if err != nil {
			return err
		}
		// The record is written in any case, so that a dispatcher that enqueued the run, or deletes
		// the record, gets a conflict.
		e.Reason, e.Tries, e.Pos = why.Reason, why.Tries, why.Pos
		e.allowOne()
		if e.Back, e.Leaving = false, false; e.Next == 0 {
			e.Next = l.nextCheck(e)
		}
		e.Last = l.clock().UnixMilli()
		e.Since = cmp.Or(e.Since, e.Last)
		if _, err = l.putEntry(ctx, e, revision); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("quarantine run %s: %w", r.RunID, kv.ErrConflict)
}

func (l *List) putEntry(ctx context.Context, e entry, revision uint64) (uint64, error) {
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

// nextCheck is the time of a run's next check. Runs that were quarantined together are checked at
// different times, which depend on the id.
func (l *List) nextCheck(e entry) int64 {
	delay, most := l.cfg.FirstDelay, l.cfg.MaxDelay
	if e.Reason == ReasonFailing || e.Reason == ReasonPanic {
		most = l.cfg.MaxDelayFailing
	}
	if e.deaths().Count >= MaxDeaths-1 {
		delay = max(delay, l.cfg.DeathDelay)
	}
	for range e.Checks {
		if delay *= 2; delay >= most {
			delay = most
			break
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.RunID))
	return l.clock().Add(delay + delay*time.Duration(h.Sum32()%64)/256).UnixMilli() // up to a quarter more
}

// Run checks the runs until ctx ends.
func (l *List) Run(ctx context.Context) error {
	for lifecycle.Wait(ctx, l.cfg.Interval) {
		l.sweep(ctx)
	}
	return ctx.Err()
}

// sweep checks the runs that are due.
func (l *List) sweep(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, l.cfg.Interval)
	defer cancel()
	all, err := kv.List(bounded, l.store, prefix)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Debug("quarantine not read", "error", err)
		}
		return
	}
	checked := 0
	l.count.set(all)
	for _, there := range all {
		var e entry
		if err := json.Unmarshal(there.Value, &e); err != nil {
			l.log.Warn("record of a quarantined run not readable", "key", there.Key, "error", err)
			continue
		}
		if e.due() > l.clock().UnixMilli() {
			continue
		}
		if checked++; checked > l.cfg.MaxChecks || ctx.Err() != nil {
			return
		}
		_ = lifecycle.Contain(l.log, "quarantine", func() error {
			l.checkEntry(ctx, e, there.Revision)
			return nil
		}, "run_id", e.RunID)
	}
}

// checkEntry enqueues a run if possible. Of several concurrent dispatchers, the first one to set
// the next check does it.
func (l *List) checkEntry(ctx context.Context, e entry, revision uint64) {
	if e.Back { // it is executed, or waits in the queue
		l.logFailure(ctx, e, l.store.Delete(ctx, keyOf(e.run()), revision))
		return
	}
	back, err := l.readmitRun(ctx, &e, revision)
	switch {
	case isRunsOwn(err):
		l.log.Debug("quarantined run stays", "run_id", e.RunID, "reason", e.reason(), "error", err)
	case err != nil:
		l.logFailure(ctx, e, err)
	case back:
		l.log.Info("run put back into the queue", "run_id", e.RunID, "reason", e.reason())
	default:
		l.log.Info("run left quarantine: it has ended", "run_id", e.RunID, "reason", e.reason())
	}
}

// readmitRun enqueues a run, and records that. An error with isRunsOwn is caused by the run itself.
func (l *List) readmitRun(ctx context.Context, e *entry, revision uint64) (back bool, err error) {
	e.Checks++
	e.Next, e.Leaving = l.nextCheck(*e), true
	if revision, err = l.putEntry(ctx, *e, revision); err != nil {
		return false, err
	}
	back, failed := l.readmitter.Readmit(ctx, e.run())
	if failed != nil && !isRunsOwn(failed) { // the run may be in the queue
		return false, failed
	}
	e.Back, e.Leaving = failed == nil, false
	_, err = l.putEntry(ctx, *e, revision)
	if failed != nil {
		return false, failed
	}
	if errors.Is(err, kv.ErrConflict) { // quarantined again already, or another dispatcher was faster
		err = nil
	}
	return back, err
}

// isRunsOwn reports that an error is caused by the run itself, not by an unavailable dependency.
func isRunsOwn(err error) bool {
	return err != nil && !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrConflict) && !errors.Is(err, runlog.ErrUnavailable) &&
		!errors.Is(err, runlog.ErrConflict) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		fault.CodeOf(err) != fault.ServiceUnavailable
}

// logFailure logs a failed check, unless another dispatcher made it. It is retried.
func (l *List) logFailure(ctx context.Context, e entry, err error) {
	if err != nil && !errors.Is(err, kv.ErrConflict) && ctx.Err() == nil {
		l.log.Warn("quarantined run not checked", "run_id", e.RunID, "error", err)
	}
}
