package retention

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// maxPause is the time between two sweeps. It is shorter if a retention is.
	maxPause = time.Minute
	minPause = time.Second
	// page is how many runs or workflows are read in one request.
	page = 100
	// settle is how often it is checked whether the last runs were removed.
	settle = 50 * time.Millisecond
	// maxSettle limits that wait.
	maxSettle = 10 * time.Second
	// lateWarning is how far behind the clock of the host the clock of retention is before it is worth
	// a warning.
	lateWarning = 2 * time.Hour
)

// Flow is a workflow with ended runs.
type Flow struct {
	Tenant, WorkflowID string
	// Oldest is when its oldest ended run ended.
	Oldest time.Time
}

// End is an ended run in the order of ends; the zero End is before all.
type End struct{ CompletedAt, RunID string }

// Index is the read model's index of ended runs.
type Index interface {
	// Flows lists workflows of all tenants after one; the last page has fewer than limit.
	Flows(ctx context.Context, after Flow, limit int) ([]Flow, error)
	// Ended lists runs of a workflow that ended before an instant, after one.
	Ended(ctx context.Context, of Flow, before time.Time, after End, limit int) ([]End, error)
	// Count counts the runs of a workflow that ended before each instant.
	Count(ctx context.Context, of Flow, before ...time.Time) ([]int64, error)
}

// Expirer erases runs whose retention is over.
type Expirer interface {
	// Prepare does what must be done before a run is erased: its archive is durable when it returns.
	// Several runs are prepared at the same time. Errors: ErrArchive, ErrAway, and those of Expire.
	Prepare(ctx context.Context, run subject.Run) error
	// Expire marks a run whose retention is over as erased. Errors: fault.Conflict if it cannot be
	// erased now, fault.RunNotFound if it is gone, fault.CapabilityNotProvided if no run of this log can
	// be erased, others if the log is unavailable or something of the run is damaged.
	Expire(ctx context.Context, run subject.Run) error
	// Settled reports whether a marked run was removed from the log.
	Settled(ctx context.Context, run subject.Run) (bool, error)
}

// Config configures a sweeper.
type Config struct {
	// Rate limits the erased runs per second.
	Rate float64
}

// Sweeper erases runs whose retention is over.
type Sweeper struct {
	policies Policies
	clock    *Clock
	index    Index
	eraser   Expirer
	log      *slog.Logger
	rate     *rate.Limiter
	// may reports whether this process may act.
	may func() bool

	owner  atomic.Bool
	stats  atomic.Pointer[Stats]
	totals atomic.Pointer[Totals]

	// warned, measured and kept are used by the goroutine that sweeps.
	warned   bool
	measured time.Time
	kept     keptRuns
}

// Stats describes the last sweep of this process.
type Stats struct {
	// Expired counts the runs that this process has erased.
	Expired int64
	// Unarchived counts the failed attempts to archive a run whose retention is over.
	Unarchived int64
	// Behind is how far the clock of retention is behind the clock of the host.
	Behind time.Duration
	// Now is the time of the clock of retention.
	Now time.Time
}

// NewSweeper returns a sweeper; may reports whether this process may act.
func NewSweeper(cfg Config, p Policies, c *Clock, index Index, eraser Expirer, may func() bool, log *slog.Logger) *Sweeper {
	s := &Sweeper{
		policies: p, clock: c, index: index, eraser: eraser, may: may, log: log,
		rate: rate.NewLimiter(rate.Limit(cfg.Rate), 1), kept: newKeptRuns(),
	}
	s.stats.Store(&Stats{})
	return s
}

// Own sets whether this process is the one that sweeps.
func (s *Sweeper) Own(own bool) { s.owner.Store(own) }

// Stats returns what this process has done.
func (s *Sweeper) Stats() Stats { return *s.stats.Load() }

// Totals returns the last count of all ended runs; nil if another process counts them.
func (s *Sweeper) Totals() *Totals {
	if !s.owner.Load() {
		return nil
	}
	return s.totals.Load()
}

// Policies returns the policies.
func (s *Sweeper) Policies() Policies { return s.policies }

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	pause := minPause
	for {
		if s.owns() {
			var err error
			if pause, err = s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("runs whose retention is over were not all erased; trying again", "error", err)
			}
		} else {
			s.clock.Forget() // another process moves it
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Sweep erases the runs whose retention is over, and returns the time until the next sweep.
func (s *Sweeper) Sweep(ctx context.Context) (pause time.Duration, err error) {
	pause = pauseFor(maxPause, s.policies.Default)
	now, behind, err := s.clock.Advance(ctx)
	if err != nil {
		return minPause, err
	}
	s.note(now, behind)
	s.measure(ctx, now)
	for after := (Flow{}); ; {
		flows, err := s.index.Flows(ctx, after, page)
		if err != nil {
			return pause, err
		}
		for _, f := range flows {
			keep, err := s.policies.Of(ctx, f.Tenant, f.WorkflowID)
			if err != nil {
				s.log.Warn("retention unknown: the runs are kept", "tenant", f.Tenant, "workflow_id", f.WorkflowID, "error", err)
				continue
			}
			if keep.Keep == 0 {
				continue
			}
			pause = pauseFor(pause, keep.Keep)
			if before := now.Add(-keep.Keep); f.Oldest.Before(before) {
				if err := s.sweepFlow(ctx, f, before, keep); err != nil {
					return pause, err
				}
			}
		}
		if len(flows) < page {
			return pause, nil
		}
		after = flows[len(flows)-1]
	}
}

// pauseFor shortens the time until the next sweep for a retention; 0 means no retention.
func pauseFor(pause, keep time.Duration) time.Duration {
	if keep == 0 {
		return pause
	}
	return min(pause, max(keep/10, minPause))
}

// note records the clock, and warns once if it is far behind the host's.
func (s *Sweeper) note(now time.Time, behind time.Duration) {
	st := s.Stats()
	st.Now, st.Behind = now, behind
	s.stats.Store(&st)
	late := behind > lateWarning
	if late && !s.warned {
		s.log.Warn("the clock of this host is far ahead of the time that retention counts with; retention follows slowly. Check the clock",
			"behind", behind.Round(time.Second), "retention_time", now)
	}
	s.warned = late
}

// sweepFlow erases the runs of a workflow that ended before an instant. A run that cannot be erased does
// not stop the others; an outage of the log does.
func (s *Sweeper) sweepFlow(ctx context.Context, f Flow, before time.Time, keep Retention) error {
	var erased, kept int
	var unarchived failures
	defer func() {
		if erased > 0 {
			s.log.Info("runs erased: their retention is over", "tenant", f.Tenant, "workflow_id", f.WorkflowID,
				"runs", erased, "kept", kept, "retention", keep.Keep, "source", keep.Source)
		}
		s.noteUnarchived(f, unarchived)
	}()
	for after := (End{}); ; {
		runs, err := s.index.Ended(ctx, f, before, after, page)
		if err != nil {
			return err
		}
		var last subject.Run
		due := s.kept.due(f, runs, time.Now())
		kept += len(runs) - len(due)
		away := len(due) > 0
		var failed error // of a run that is not archived
		for i, err := range s.prepare(ctx, f, due) {
			if err := s.rate.Wait(ctx); err != nil {
				return err
			}
			if !s.owns() {
				return nil // another process continues
			}
			run := f.run(due[i])
			away = away && errors.Is(err, ErrAway)
			if err == nil {
				err = s.eraser.Expire(ctx, run)
			}
			switch code := fault.CodeOf(err); {
			case errors.Is(err, ErrArchive):
				kept++
				unarchived.add(run.RunID, err)
				failed = err
				if !errors.Is(err, ErrAway) {
					s.kept.later(run, keep.Keep, time.Now())
				}
			case err == nil:
				last = run
				erased++
				s.kept.done(run)
				s.count()
			case code == fault.RunNotFound: // erased, and the read model follows
			case code == fault.Conflict: // a legal hold, or a parent that goes on
				kept++
				s.kept.later(run, keep.Keep, time.Now())
			case s.concernsAll(ctx, err):
				return err
			default:
				kept++
				s.kept.later(run, keep.Keep, time.Now())
				s.log.Warn("a run whose retention is over cannot be erased: it is kept",
					"tenant", run.Tenant, "workflow_id", run.WorkflowID, "run_id", run.RunID, "error", err)
			}
		}
		if failed != nil && s.concernsAll(ctx, failed) {
			return failed
		}
		if err := s.settle(ctx, last); err != nil || len(runs) < page || away {
			return err
		}
		after = runs[len(runs)-1]
	}
}

// concernsAll reports whether an error of one run is one of all runs.
func (s *Sweeper) concernsAll(ctx context.Context, err error) bool {
	return ctx.Err() != nil || fault.CodeOf(err) == fault.CapabilityNotProvided || s.clock.Check(ctx) != nil
}

// owns reports whether this process sweeps.
func (s *Sweeper) owns() bool { return s.owner.Load() && s.may() }

func (s *Sweeper) count() {
	st := s.Stats()
	st.Expired++
	s.stats.Store(&st)
}

// settle waits until a marked run was removed from the log, up to maxSettle. Runs are removed in the
// order of their marks, so an erasure that a caller requests waits for one page of runs at most.
func (s *Sweeper) settle(ctx context.Context, run subject.Run) error {
	if run.RunID == "" {
		return nil
	}
	for range (retry.Policy{Base: settle, Total: maxSettle}).Tries(ctx) {
		done, err := s.eraser.Settled(ctx, run)
		switch {
		case err != nil && s.concernsAll(ctx, err):
			return err
		case err != nil:
			s.log.Warn("unknown whether an erased run was removed", "tenant", run.Tenant, "run_id", run.RunID, "error", err)
			return nil
		case done || !s.owns():
			return nil
		}
	}
	if ctx.Err() == nil {
		s.log.Warn("an erased run is not removed yet; erasing others", "tenant", run.Tenant, "run_id", run.RunID, "waited", maxSettle)
	}
	return ctx.Err()
}
