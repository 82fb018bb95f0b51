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
	// pageSize is how many overdue timers are read at a time.
	pageSize = 1000
	// maxAhead limits the timers that are read before they are woken. Dispatchers that sweep at
	// the same time each begin somewhere else in them.
	maxAhead = 16 * pageSize
	// A chunk is woken by one dispatcher. The first few of its runs show whether another
	// dispatcher is already waking it; then the rest is left to that one.
	chunkSize = 128
	probeSize = 8
	// chunksAtOnce times wakesOfChunk are maxWakes.
	chunksAtOnce = 4
	wakesOfChunk = maxWakes / chunksAtOnce
	// recheckAfter is how long an overdue run is left alone after a look: a woken run needs some
	// time to move on, and one that cannot be woken stays overdue.
	recheckAfter = 30 * time.Second
	// otherWakesAfter is how long a run is left alone that another dispatcher seems to be waking.
	otherWakesAfter = 5 * time.Second
)

// DueRun is what a run waits for.
type DueRun struct {
	Run   subject.Run
	DueMs int64
}

// Index finds timers that are overdue, in a fixed order and starting after one; the zero Timer
// is before all.
type Index interface {
	Due(ctx context.Context, before time.Time, after DueRun, limit int) ([]DueRun, error)
}

// sweeper is what a watch needs to find lost runs.
type sweeper struct {
	index Index

	skipMu sync.Mutex // guards looked
	// skipUntil is until when runs are left alone.
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

// sweep wakes all runs that are overdue and that no process watches. Every dispatcher sweeps,
// in an order of its own, so that together they are as fast as the log. Nothing depends on who
// wakes a run: a wake is an append that succeeds once.
func (w *Watch) sweep(ctx context.Context) {
	before := w.clock().Add(-w.cfg.Grace)
	for after, more := (DueRun{}), true; more && ctx.Err() == nil; {
		var timers []DueRun
		timers, after, more = w.readAhead(ctx, before, after)
		chunks := slices.Collect(slices.Chunk(w.withoutSkipped(timers), chunkSize))
		rand.Shuffle(len(chunks), func(i, k int) { chunks[i], chunks[k] = chunks[k], chunks[i] }) //nolint:gosec // G404: it only spreads the work
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

// withoutSkipped are the timers of runs that are not left alone now.
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

// skipFor leaves runs alone for a time.
func (w *Watch) skipFor(d time.Duration, timers ...DueRun) {
	w.skipMu.Lock()
	defer w.skipMu.Unlock()
	until := w.clock().Add(d)
	for _, t := range timers {
		w.skipUntil[t] = until
	}
}

// wakeChunk wakes the runs of a chunk, unless another dispatcher is doing that.
func (w *Watch) wakeChunk(ctx context.Context, chunk []DueRun) {
	probes := min(probeSize, len(chunk))
	if w.wakeAll(ctx, chunk[:probes]) < probes {
		w.wakeAll(ctx, chunk[probes:])
		return
	}
	w.skipFor(otherWakesAfter, chunk[probes:]...)
}

// wakeAll wakes runs in parallel, and counts those that needed no wake.
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
