package cold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// sealedTogether is how many runs share a write of the store, sealedBytes from how many compressed
	// bytes on fewer do.
	sealedTogether = 32
	sealedBytes    = 16 << 20
	// A sweep starts after a tenth of the hot window, within these limits.
	minPause = 100 * time.Millisecond
	maxPause = time.Minute
)

// SealerDeps are the collaborators of a sealer; the caller owns them.
type SealerDeps struct {
	Log   Hot
	Store Store
	// Past: frames are removed from the log only when all readers of this host are past them.
	Past   Past
	Clock  func() time.Time
	Logger *slog.Logger
}

// Sealer moves runs from the log to the store when they have ended for the length of the hot window. It
// may run next to others, and be ended at any point.
type Sealer struct {
	window time.Duration
	deps   SealerDeps

	turn sync.Mutex // held during a sweep, and while paused; guards next
	// next is the position after which runs were not looked at.
	next uint64

	sealed, failed atomic.Int64
}

// NewSealer returns a sealer for a hot window. With a window of 0 it only finishes, or discards, what an
// earlier one has begun.
func NewSealer(window time.Duration, d SealerDeps) *Sealer { return &Sealer{window: window, deps: d} }

// Pause waits for the end of a step and keeps the sealer from the next one until resume is called.
func (s *Sealer) Pause() (resume func()) {
	s.turn.Lock()
	return s.turn.Unlock
}

// Run sweeps until ctx ends.
func (s *Sealer) Run(ctx context.Context) error {
	pause := min(max(s.window/10, minPause), maxPause)
	if s.window == 0 {
		pause = maxPause
	}
	warned := false
	for ctx.Err() == nil {
		err := lifecycle.Contain(s.deps.Logger, "sealing", func() error { return s.Sweep(ctx) })
		if failed := err != nil && ctx.Err() == nil; failed {
			s.failed.Add(1)
			if !warned {
				s.deps.Logger.Warn("ended runs not sealed; they stay in the run log, and the next sweep tries again", "error", err)
			}
			warned = true
		} else {
			warned = false
		}
		lifecycle.Wait(ctx, pause)
	}
	return ctx.Err()
}

// Sweep seals all runs whose hot window is over. It first finishes what an earlier sweep, or another
// process, has begun. Errors: runlog.ErrUnavailable, runlog.ErrPermanent.
func (s *Sealer) Sweep(ctx context.Context) error {
	failed := s.finishPending(ctx)
	if errors.Is(failed, runlog.ErrUnavailable) || ctx.Err() != nil || s.window == 0 {
		return failed
	}
	for {
		more, err := s.step(ctx)
		if err != nil || !more {
			return errors.Join(failed, err)
		}
	}
}

// finishPending finishes the objects that are stored and not confirmed. A run that cannot be finished
// does not stop the others, unless the log or the store cannot be reached.
func (s *Sealer) finishPending(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	var failed error
	tried := map[subject.Run]bool{}
	for limit := sealedTogether; ; limit *= 2 {
		runs, err := s.deps.Store.Pending(ctx, limit)
		if err != nil {
			return unavailable(err)
		}
		for _, run := range runs {
			if tried[run] {
				continue
			}
			tried[run] = true
			err := s.finish(ctx, run)
			if errors.Is(err, frame.ErrDamaged) {
				err = s.again(ctx, run, err)
			}
			switch {
			case err == nil, errors.Is(err, ErrNotFound): // discarded, or erased since
			case errors.Is(err, frame.ErrDamaged):
				s.deps.Logger.Error("a run cannot be sealed", "tenant", run.Tenant, "run_id", run.RunID, "error", err)
			case errors.Is(err, runlog.ErrUnavailable), ctx.Err() != nil:
				return errors.Join(failed, err)
			default:
				failed = errors.Join(failed, fmt.Errorf("run %s: %w", run.RunID, err))
			}
		}
		if len(runs) < limit {
			return failed
		}
	}
}

// again stores and finishes a run whose pending object is damaged, if the log still has the run. Errors: why
// if it does not.
func (s *Sealer) again(ctx context.Context, run subject.Run, why error) error {
	o, err := s.encode(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound), errors.Is(err, runlog.ErrSealed):
		return why
	case err != nil:
		return err
	}
	if err := s.deps.Store.Put(ctx, o); err != nil {
		return unavailable(err)
	}
	return s.finish(ctx, run)
}

// step seals some runs. It rests as long as it has worked, because other writers of the log wait while
// the server overwrites frames.
func (s *Sealer) step(ctx context.Context) (more bool, err error) {
	began := time.Now()
	defer func() {
		if more {
			lifecycle.Wait(ctx, time.Since(began))
		}
	}()
	s.turn.Lock()
	defer s.turn.Unlock()
	ends, next, more, err := s.deps.Log.Ended(ctx, s.next, s.deps.Clock().Add(-s.window), sealedTogether)
	if err != nil {
		return false, err
	}
	for len(ends) > 0 {
		n, err := s.store(ctx, ends)
		if err != nil {
			return false, err
		}
		for _, end := range ends[:n] {
			err := s.finish(ctx, end.Run)
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, frame.ErrDamaged) {
				return false, err
			}
		}
		ends = ends[n:]
	}
	s.next = next
	return more, nil
}

// store stores the first of some ended runs together, and returns how many. Runs that are damaged, or
// gone, are left out.
func (s *Sealer) store(ctx context.Context, ends []*frame.Frame) (n int, err error) {
	var objects []*Object
	size := int64(0)
	for n < len(ends) && size < sealedBytes {
		o, err := s.encode(ctx, ends[n].Run)
		n++
		switch {
		case err == nil:
			objects, size = append(objects, o), size+o.Bytes()
		case errors.Is(err, runlog.ErrNotFound), errors.Is(err, runlog.ErrSealed): // erased, or sealed by another process
		case errors.Is(err, frame.ErrDamaged):
			run := ends[n-1].Run
			s.deps.Logger.Error("a damaged run is not sealed", "tenant", run.Tenant, "run_id", run.RunID, "error", err)
		default:
			return 0, err
		}
	}
	if len(objects) == 0 {
		return n, nil
	}
	return n, unavailable(s.deps.Store.Put(ctx, objects...))
}

// framesPerRead is how many frames of a run are in memory at a time, next to its compressed blocks.
const framesPerRead = 64

// encode returns the object of a run.
func (s *Sealer) encode(ctx context.Context, run subject.Run) (*Object, error) {
	first, err := s.deps.Log.First(ctx, run)
	if err != nil {
		return nil, err
	}
	var w writer
	for page := []*frame.Frame{first}; len(page) > 0; {
		for _, f := range page {
			if err := w.add(f); err != nil {
				return nil, err
			}
		}
		if w.last.Kind == subject.End {
			return w.object()
		}
		if page, err = s.deps.Log.Page(ctx, run, w.last.Pos, framesPerRead); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %s has no end any more", runlog.ErrNotFound, run.RunID)
}

// finish moves a run whose object is stored: it reads the object back, marks the run as sealed in the
// log, removes its frames, and confirms the object. Each step may be repeated. Errors: ErrNotFound if it
// has no object, frame.ErrDamaged if the object is damaged, runlog.ErrUnavailable, runlog.ErrPermanent.
func (s *Sealer) finish(ctx context.Context, run subject.Run) error {
	d := s.deps
	var (
		end       *frame.Frame
		positions []uint64
	)
	err := walk(ctx, d.Store, run, span{from: -1}, func(frames []*frame.Frame) bool {
		for _, f := range frames {
			end, positions = f, append(positions, f.Pos)
		}
		return true
	})
	if err != nil {
		return unavailable(err)
	}
	err = d.Log.Seal(ctx, end.Run, end.Head(), positions)
	if errors.Is(err, runlog.ErrConflict) { // the run was erased, or the log is one of before the run's end
		return unavailable(d.Store.Discard(ctx, run, end.Hash))
	}
	if err != nil {
		return err
	}
	if err := d.Past(ctx, end.Pos); err != nil {
		return err
	}
	err = d.Log.Drop(ctx, end.Run)
	if errors.Is(err, runlog.ErrConflict) { // erased since: the erasure deletes the object
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.Store.Confirm(ctx, run, end.Hash); err != nil {
		return unavailable(err)
	}
	s.sealed.Add(1)
	return nil
}

// unavailable makes an error of the store one of the log.
func unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	}
	return err
}
