package timers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// pageSize limits the timers of one query.
	pageSize = 1000
	// maxAhead limits the timers that are read before they are woken. Concurrent sweeps of several
	// dispatchers start at different places in them.
	maxAhead = 16 * pageSize
	// One dispatcher wakes a chunk. If the first runs of a chunk were all woken a moment ago, another
	// dispatcher wakes it, and the rest is left to that one.
	chunkSize = 128
	probeSize = 8
	// chunksAtOnce times wakesOfChunk are maxWakes.
	chunksAtOnce = 4
	wakesOfChunk = maxWakes / chunksAtOnce
	// recheckAfter is the pause before a woken run is examined again. It needs time to continue.
	recheckAfter = 30 * time.Second
	// otherWakesAfter is the pause for runs that need no wake, or that another dispatcher seems to be
	// waking.
	otherWakesAfter = 5 * time.Second
	// minPause is the pause between two sweeps.
	minPause = 100 * time.Millisecond
	// retryRead is the pause after a query that failed.
	retryRead = 250 * time.Millisecond
)

// DueRun is a run and its due time.
type DueRun struct {
	Run   subject.Run
	DueMs int64
}

func (r DueRun) due() time.Time { return time.UnixMilli(r.DueMs) }

// Index lists timers due before an instant in order of their due times, after a given one. A DueRun
// without a run is before all that are due at its time.
type Index interface {
	Due(ctx context.Context, before time.Time, after DueRun, limit int) ([]DueRun, error)
}

// sweeper is the state of the search for overdue runs.
type sweeper struct {
	index Index

	skipMu sync.Mutex // guards skipUntil
	// skipUntil is the time until which runs are skipped.
	skipUntil map[DueRun]time.Time
}

// wakeLost sweeps until ctx ends. A complete sweep, every SweepEvery, reads all overdue timers.
// Between two of them, further sweeps begin when the next timer of another process is overdue by
// Grace. They read the timers that became overdue since the last one.
func (w *Watch) wakeLost(ctx context.Context) error {
	var (
		from     DueRun
		complete time.Time // of the next complete sweep
	)
	for {
		now := w.clock()
		if left := complete.Sub(now); left <= 0 || left > w.cfg.SweepEvery { // also after the clock was set back
			from, complete = DueRun{}, now.Add(w.cfg.SweepEvery)
			w.forgetSkipped(now)
		}
		before := now.Add(-w.cfg.Grace)
		err := w.sweep(ctx, from, before)
		from = DueRun{DueMs: before.UnixMilli()}
		next := complete
		if err == nil {
			next, err = w.nextSweep(ctx, from, complete)
		}
		if err != nil {
			if ctx.Err() == nil {
				w.log.Debug("timers not read", "error", err)
			}
			complete = w.clock().Add(retryRead)
			next = complete
		}
		if !lifecycle.Wait(ctx, max(next.Sub(w.clock()), minPause)) {
			return ctx.Err()
		}
	}
}

// nextSweep returns the time of the next sweep, at the latest that of the next complete one.
func (w *Watch) nextSweep(ctx context.Context, from DueRun, complete time.Time) (time.Time, error) {
	page, err := w.index.Due(ctx, complete.Add(-w.cfg.Grace), from, pageSize)
	if err != nil {
		return complete, err
	}
	next := complete
	if len(page) == pageSize { // others may follow
		next = page[pageSize-1].due().Add(w.cfg.Grace)
	}
	for _, t := range page {
		if !w.watches(t) {
			next = t.due().Add(w.cfg.Grace + w.offset(t))
			break
		}
	}
	if next.After(complete) {
		next = complete
	}
	return next, nil
}

// watches reports whether this process wakes a run at its due time.
func (w *Watch) watches(t DueRun) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.byRun[key{t.Run.Tenant, t.Run.RunID}]
	return ok && s.due.UnixMilli() == t.DueMs
}

// offset is a pause shorter than Grace, which differs between processes and between timers. So
// dispatchers do not wake the same run at the same time, and each is first for some of them.
func (w *Watch) offset(t DueRun) time.Duration {
	if w.cfg.Grace <= 0 {
		return 0
	}
	sum := fnv.New32a()
	_, _ = fmt.Fprint(sum, w.cfg.Process(), " ", t.Run.RunID)
	return time.Duration(sum.Sum32()) % w.cfg.Grace
}

// sweep wakes the overdue runs that no process watches, after a timer. Every dispatcher sweeps in a
// random order, so that together they are as fast as the log. Any of them may wake a run: only one
// append of the wake frame succeeds.
func (w *Watch) sweep(ctx context.Context, after DueRun, before time.Time) error {
	for more := true; more && ctx.Err() == nil; {
		var (
			timers []DueRun
			err    error
		)
		timers, after, more, err = w.readAhead(ctx, before, after)
		chunks := slices.Collect(slices.Chunk(w.lost(timers), chunkSize))
		rand.Shuffle(len(chunks), func(i, k int) { chunks[i], chunks[k] = chunks[k], chunks[i] }) //nolint:gosec // G404: it only distributes the work
		inParallel(chunks, chunksAtOnce, func(chunk []DueRun) { w.wakeChunk(ctx, chunk) })
		if err != nil {
			return err
		}
	}
	return nil
}

// readAhead reads pages of overdue timers. more is false after the last page. After an error, the
// timers of earlier pages are returned.
func (w *Watch) readAhead(ctx context.Context, before time.Time, after DueRun) (timers []DueRun, last DueRun, more bool, err error) {
	for len(timers) < maxAhead {
		page, err := w.index.Due(ctx, before, after, pageSize)
		timers = append(timers, page...)
		if err != nil || len(page) < pageSize {
			return timers, after, false, err
		}
		after = page[len(page)-1]
	}
	return timers, after, true, nil
}

// lost returns the timers that this process does not watch, and does not skip now.
func (w *Watch) lost(timers []DueRun) []DueRun {
	now := w.clock()
	w.skipMu.Lock()
	defer w.skipMu.Unlock()
	return slices.DeleteFunc(timers, func(t DueRun) bool { return now.Before(w.skipUntil[t]) || w.watches(t) })
}

// forgetSkipped forgets the runs that are skipped no longer.
func (w *Watch) forgetSkipped(now time.Time) {
	w.skipMu.Lock()
	defer w.skipMu.Unlock()
	maps.DeleteFunc(w.skipUntil, func(_ DueRun, until time.Time) bool { return !now.Before(until) })
}

// skipFor skips runs for a time.
func (w *Watch) skipFor(d time.Duration, timers ...DueRun) {
	w.skipMu.Lock()
	defer w.skipMu.Unlock()
	until := w.clock().Add(d)
	for _, t := range timers {
		w.skipUntil[t] = until
	}
}

// wakeChunk wakes the runs of a chunk, unless another dispatcher does.
func (w *Watch) wakeChunk(ctx context.Context, chunk []DueRun) {
	probes := min(probeSize, len(chunk))
	if w.wakeAll(ctx, chunk[:probes]) < probes {
		w.wakeAll(ctx, chunk[probes:])
		return
	}
	w.skipFor(otherWakesAfter, chunk[probes:]...)
}

// wakeAll wakes runs in parallel, and returns how many were woken elsewhere.
func (w *Watch) wakeAll(ctx context.Context, timers []DueRun) int {
	var others atomic.Int64
	inParallel(timers, wakesOfChunk, func(t DueRun) {
		if ctx.Err() != nil {
			return
		}
		var woken, elsewhere bool
		err := w.contain(t.Run, func() (err error) {
			woken, elsewhere, err = w.waker.WakeLost(ctx, t.Run, t.due())
			return err
		})
		switch {
		case err == nil && woken:
			w.skipFor(recheckAfter, t)
		case err == nil:
			w.skipFor(otherWakesAfter, t)
			if elsewhere {
				others.Add(1)
			}
		case !errors.Is(err, runlog.ErrNotFound) && ctx.Err() == nil:
			w.log.Warn("overdue run not woken", "run_id", t.Run.RunID, "error", err)
		}
	})
	return int(others.Load())
}
