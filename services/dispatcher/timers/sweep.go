package timers

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// pageSize limits the overdue timers of one query.
	pageSize = 1000
	// maxAhead limits the timers that are read before they are woken. Concurrent sweeps of several
	// dispatchers start at different places in them.
	maxAhead = 16 * pageSize
	// One dispatcher wakes a chunk. The first runs of a chunk show whether another dispatcher
	// already wakes it; then the rest is left to that one.
	chunkSize = 128
	probeSize = 8
	// chunksAtOnce times wakesOfChunk are maxWakes.
	chunksAtOnce = 4
	wakesOfChunk = maxWakes / chunksAtOnce
	// recheckAfter is the pause before an overdue run is examined again. A woken run needs time to
	// continue, and a run that cannot be woken stays overdue.
	recheckAfter = 30 * time.Second
	// otherWakesAfter is the pause for runs that another dispatcher seems to be waking.
	otherWakesAfter = 5 * time.Second
)

// DueRun is a run and its due time.
type DueRun struct {
	Run   subject.Run
	DueMs int64
}

// Index lists overdue timers in a fixed order, after a given one; the zero DueRun is before all.
type Index interface {
	Due(ctx context.Context, before time.Time, after DueRun, limit int) ([]DueRun, error)
}

// sweeper is the state of the search for overdue runs.
type sweeper struct {
	index Index

	skipMu sync.Mutex // guards looked
	// skipUntil is the time until which runs are skipped.
	skipUntil map[DueRun]time.Time
}

// wakeLost sweeps until ctx ends.
func (w *Watch) wakeLost(ctx context.Context) error {
	tick := time.NewTicker(w.cfg.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			w.sweep(ctx)
		}
	}
}

// sweep wakes all overdue runs that no process watches. Every dispatcher sweeps in a random order,
// so that together they are as fast as the log. Any of them may wake a run: only one append of the
// wake frame succeeds.
func (w *Watch) sweep(ctx context.Context) {
	before := w.clock().Add(-w.cfg.Grace)
	for after, more := (DueRun{}), true; more && ctx.Err() == nil; {
		var timers []DueRun
		timers, after, more = w.readAhead(ctx, before, after)
		chunks := slices.Collect(slices.Chunk(w.withoutSkipped(timers), chunkSize))
		rand.Shuffle(len(chunks), func(i, k int) { chunks[i], chunks[k] = chunks[k], chunks[i] }) //nolint:gosec // G404: it only distributes the work
		inParallel(chunks, chunksAtOnce, func(chunk []DueRun) { w.wakeChunk(ctx, chunk) })
	}
}

// readAhead reads pages of overdue timers. more is false after the last page, and after one that
// could not be read: the next sweep starts over.
func (w *Watch) readAhead(ctx context.Context, before time.Time, after DueRun) (timers []DueRun, last DueRun, more bool) {
	for len(timers) < maxAhead {
		page, err := w.index.Due(ctx, before, after, pageSize)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Debug("overdue timers not read", "error", err)
			}
			return timers, after, false
		}
		timers = append(timers, page...)
		if len(page) < pageSize {
			return timers, after, false
		}
		after = page[len(page)-1]
	}
	return timers, after, true
}

// withoutSkipped returns the timers that are not skipped now.
func (w *Watch) withoutSkipped(timers []DueRun) []DueRun {
	w.skipMu.Lock()
	defer w.skipMu.Unlock()
	now := w.clock()
	maps.DeleteFunc(w.skipUntil, func(_ DueRun, until time.Time) bool { return !now.Before(until) })
	return slices.DeleteFunc(timers, func(t DueRun) bool {
		_, ok := w.skipUntil[t]
		return ok
	})
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

// wakeAll wakes runs in parallel, and returns how many needed no wake.
func (w *Watch) wakeAll(ctx context.Context, timers []DueRun) int {
	var awake atomic.Int64
	inParallel(timers, wakesOfChunk, func(t DueRun) {
		if ctx.Err() != nil {
			return
		}
		var woken bool
		err := w.contain(t.Run, func() (err error) {
			woken, err = w.waker.WakeLost(ctx, t.Run)
			return err
		})
		switch {
		case err == nil:
			w.skipFor(recheckAfter, t)
			if !woken {
				awake.Add(1)
			}
		case !errors.Is(err, runlog.ErrNotFound) && ctx.Err() == nil:
			w.log.Warn("overdue run not woken", "run_id", t.Run.RunID, "error", err)
		}
	})
	return int(awake.Load())
}
