// Package quarantine records the runs that cannot be loaded or continued, and puts those that
// can again back into the queue: another server may lead the log by then, a backup or a
// definition may be in place, or a newer dispatcher may run. An operator lists them, retries
// one, or ends one.
//
// A quarantined run holds no place in the queue, which others need, and no memory of a
// dispatcher: it is a record that all dispatchers share. The record is written before the run is
// taken off the queue, and deleted long after the run was put back, so that a crash anywhere
// leaves the run in one of the two. In both, the run is only checked, or handed out, once more.
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
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Config says how often runs are looked at.
type Config struct {
	// Interval is how often the list is read.
	Interval time.Duration
	// FirstDelay is how long a run stays before it is looked at; each time that is not enough it
	// stays twice as long, up to Most.
	FirstDelay, MaxDelay time.Duration
	// MaxDelayFailing takes the place of Most where a check cannot find out whether the run would
	// go on: each one is a new frame in the run's log.
	MaxDelayFailing time.Duration
	// MaxChecks bounds the runs that are looked at each time.
	MaxChecks int
}

// DefaultConfig has a run back within a quarter of an hour after its log was mended (Most, a quarter
// of it more, and Every), and costs a log that nobody mends next to nothing.
func DefaultConfig() Config {
	return Config{Interval: 30 * time.Second, FirstDelay: time.Minute, MaxDelay: 11 * time.Minute, MaxDelayFailing: 6 * time.Hour, MaxChecks: 256}
}

// Readmitter puts runs back.
type Readmitter interface {
	// Readmit puts a run into the queue again if it can be loaded. False: it has ended, and
	// nothing is left to do. Errors: frame.ErrDamaged if its log does not read whole,
	// runlog.ErrNotFound if it is gone, and others.
	Readmit(ctx context.Context, r subject.Run) (back bool, err error)
}

// List is the runs in quarantine. It is safe for concurrent use.
type List struct {
	cfg   Config
	store kv.Store
	readmitter  Readmitter
	clock func() time.Time
	log   *slog.Logger
	count counts
}

// New makes a list; who puts runs back is set by Bind before Run.
func New(cfg Config, store kv.Store, clock func() time.Time, log *slog.Logger) *List {
	return &List{cfg: cfg, store: store, clock: clock, log: log}
}

// Bind says who puts runs back; the executor and the list know each other.
func (l *List) Bind(back Readmitter) { l.readmitter = back }

// entry is what is kept of a run.
type entry struct {
	Tenant     string `json:"tenant"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	// Checks is how often it was looked at, and Next when it is again, in Unix milliseconds.
	Checks int   `json:"looks"`
	Next  int64 `json:"next"`
	// Back: it was put back or has ended, and was not quarantined since. Leaving: a check began
	// that may have put it back.
	Back    bool `json:"back,omitempty"`
	Leaving bool `json:"leaving,omitempty"`
	// Reason is empty in records of older releases, which know damaged logs only. Since is when
	// the run was quarantined first, in Unix milliseconds, and Tries how often it was handed out
	// before it was quarantined last.
	Reason string `json:"reason,omitempty"`
	Since  int64  `json:"since,omitempty"`
	Tries  int    `json:"tries,omitempty"`
}

func (e entry) run() subject.Run {
	return subject.Run{Tenant: e.Tenant, WorkflowID: e.WorkflowID, RunID: e.RunID}
}

const prefix = "run."

func keyOf(r subject.Run) string { return prefix + r.Tenant + "." + r.RunID }

// addTries bounds how often an addition races with somebody who looks.
const addTries = 8

// Add records a run, whose delivery may be ended after that. A run that was put back and is
// quarantined again keeps its growing delay. Errors: kv.ErrUnavailable, kv.ErrConflict.
func (l *List) Add(ctx context.Context, r subject.Run, why Cause) error {
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
		// It is written in any case: a dispatcher that has put the run back, or deletes the
		// record, must find that the run came again.
		e.Reason, e.Tries = why.Reason, why.Tries
		if e.Back, e.Leaving = false, false; e.Next == 0 {
			e.Next = l.nextCheck(e)
		}
		if e.Since == 0 {
			e.Since = l.clock().UnixMilli()
		}
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

// nextCheck is when a run is checked again. Runs that were quarantined together are not checked
// together; the id decides, not chance.
func (l *List) nextCheck(e entry) int64 {
	delay, most := l.cfg.FirstDelay, l.cfg.MaxDelay
	if e.Reason == ReasonFailing || e.Reason == ReasonPanic {
		most = l.cfg.MaxDelayFailing
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

// Run looks at the runs until ctx ends.
func (l *List) Run(ctx context.Context) error {
	for lifecycle.Wait(ctx, l.cfg.Interval) {
		l.sweep(ctx)
	}
	return ctx.Err()
}

// sweep looks at the runs whose time has come.
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
	looked := 0
	l.count.set(all)
	for _, there := range all {
		var e entry
		if err := json.Unmarshal(there.Value, &e); err != nil {
			l.log.Warn("record of a quarantined run not readable", "key", there.Key, "error", err)
			continue
		}
		if e.Next > l.clock().UnixMilli() {
			continue
		}
		if looked++; looked > l.cfg.MaxChecks || ctx.Err() != nil {
			return
		}
		_ = lifecycle.Contain(l.log, "quarantine", func() error {
			l.checkEntry(ctx, e, there.Revision)
			return nil
		}, "run_id", e.RunID)
	}
}

// checkEntry puts a run back if that is possible. Of several dispatchers that come to it together,
// the first to set its next time does it.
func (l *List) checkEntry(ctx context.Context, e entry, revision uint64) {
	if e.Back { // it has been taken up, or waits in the queue
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

// readmitRun puts a run back, and records that. An error that stays reports is of the run itself.
func (l *List) readmitRun(ctx context.Context, e *entry, revision uint64) (back bool, err error) {
	e.Checks++
	e.Next, e.Leaving = l.nextCheck(*e), true
	if revision, err = l.putEntry(ctx, *e, revision); err != nil {
		return false, err
	}
	back, failed := l.readmitter.Readmit(ctx, e.run())
	if failed != nil && !isRunsOwn(failed) { // it may be in the queue
		return false, failed
	}
	e.Back, e.Leaving = failed == nil, false
	_, err = l.putEntry(ctx, *e, revision)
	if failed != nil {
		return false, failed
	}
	if errors.Is(err, kv.ErrConflict) { // it was quarantined again already, or another dispatcher was faster
		err = nil
	}
	return back, err
}

// isRunsOwn reports that a run cannot be put back for a reason of its own. What is unavailable is
// none.
func isRunsOwn(err error) bool {
	return err != nil && !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrConflict) && !errors.Is(err, runlog.ErrUnavailable) &&
		!errors.Is(err, runlog.ErrConflict) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		fault.CodeOf(err) != fault.ServiceUnavailable
}

// logFailure logs what did not work, unless another dispatcher has done it. It is tried again.
func (l *List) logFailure(ctx context.Context, e entry, err error) {
	if err != nil && !errors.Is(err, kv.ErrConflict) && ctx.Err() == nil {
		l.log.Warn("quarantined run not checked", "run_id", e.RunID, "error", err)
	}
}
