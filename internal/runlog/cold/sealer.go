package cold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// sealedTogether is how many runs share a write of the store, sealedBytes from how many compressed
	// bytes on fewer do. readAtATime is how many of them are read concurrently, atATime how many are marked,
	// whose appends share fsyncs, and removed.
	sealedTogether = 128
	sealedBytes    = 16 << 20
	readAtATime    = 8
	atATime        = 16
	// A sweep starts after a tenth of the hot window, within these limits. After a failure the pause
	// doubles up to maxPause.
	minPause = 100 * time.Millisecond
	maxPause = time.Minute
	// cleanTimeout limits how long a sweep waits for the place where a store has its contents.
	cleanTimeout = 10 * time.Second
)

// SealerDeps are the collaborators of a sealer; the caller owns them.
type SealerDeps struct {
	Log   Hot
	Store Store
	// Past: frames are removed from the log only when all readers of this host are past them.
	Past Past
	// Whole returns ErrLacking while the store lacks sealed runs of the log: then a sweep does nothing, as after
	// any error. nil: the store has them.
	Whole  func(ctx context.Context) error
	Clock  func() time.Time
	Logger *slog.Logger
	// NeverOverwrite is for tests: frames wait until they can be released.
	NeverOverwrite bool
}

// Sealer moves runs from the log to the store when they have ended for the length of the hot window. It
// may run next to others, and be ended at any point.
type Sealer struct {
	window time.Duration
	deps   SealerDeps

	turn sync.Mutex // held during a step, and while paused; guards the fields below
	// next is the position after which runs were not looked at.
	next uint64
	// resumed: the pending objects of earlier processes were looked at.
	resumed bool
	// left are sealed runs whose frames are in the log, in the order of their marks; known has them, too.
	left  []leaving
	known map[subject.Run]bool
	// releasing: this sweep has released frames.
	releasing bool
	// unremoved is why this sweep did not remove the frames of some runs. blocked: it could remove none.
	unremoved error
	blocked   bool

	sealed, failed, damaged, overwritten, released atomic.Int64
	// aside counts sealed runs whose frames could not be removed.
	aside atomic.Int64
	// failing: the last sweep failed.
	failing atomic.Bool
	// uncleaned counts failures to clean the store; littered: the last sweep had one.
	uncleaned atomic.Int64
	littered  atomic.Bool
}

// NewSealer returns a sealer for a hot window. With a window of 0 it only finishes, or discards, what an
// earlier one has begun.
func NewSealer(window time.Duration, d SealerDeps) *Sealer {
	return &Sealer{window: window, deps: d, known: map[subject.Run]bool{}}
}

// Pause waits for the end of a step and keeps the sealer from the next one until resume is called.
func (s *Sealer) Pause() (resume func()) {
	s.turn.Lock()
	return s.turn.Unlock
}

// Forget makes the next sweep check all runs again, because another process may have sealed some since.
func (s *Sealer) Forget() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.next, s.resumed, s.left, s.known = 0, false, nil, map[subject.Run]bool{}
	s.countAside()
}

// Run sweeps until ctx ends.
func (s *Sealer) Run(ctx context.Context) error {
	pause := min(max(s.window/10, minPause), maxPause)
	if s.window == 0 {
		pause = maxPause
	}
	waits := retry.Policy{Base: pause, Max: maxPause}.Start()
	warned := false
	for ctx.Err() == nil {
		err := lifecycle.Contain(s.deps.Logger, "sealing", func() error { return s.Sweep(ctx) })
		if err == nil {
			waits.Reset()
			s.failing.Store(false)
		} else if ctx.Err() == nil {
			s.failed.Add(1)
			s.failing.Store(true)
			if !warned {
				s.deps.Logger.Warn("ended runs not sealed; they stay in the run log, and the next sweep tries again", "error", err)
			}
		}
		warned = err != nil
		waits.Wait(ctx)
	}
	return ctx.Err()
}

// Warnings returns problems that an operator must solve.
func (s *Sealer) Warnings() (out []string) {
	if s.failing.Load() {
		out = append(out, "ended runs are not sealed, or stay in the run log: the cold store, the run log or a reader of it fails; the host's log has the reason")
	}
	if n := s.aside.Load(); n > 0 {
		out = append(out, fmt.Sprintf("sealed runs whose frames cannot be removed from the run log: %d", n))
	}
	if n := s.damaged.Load(); n > 0 {
		out = append(out, fmt.Sprintf("times that a damaged run was not sealed: %d", n))
	}
	return out
}

// Sweep seals all runs whose hot window is over, and removes frames of sealed runs from the log. It first
// finishes what an earlier process has begun. Errors: runlog.ErrUnavailable, runlog.ErrRemovalDenied.
func (s *Sealer) Sweep(ctx context.Context) error {
	if err := s.whole(ctx); err != nil {
		if errors.Is(err, ErrLacking) {
			s.Forget() // what is restored may have other pending objects
		}
		return err
	}
	err := s.sweep(ctx)
	s.clean(ctx)
	return err
}

// whole returns an ErrLacking while the store lacks sealed runs.
func (s *Sealer) whole(ctx context.Context) error {
	if s.deps.Whole == nil {
		return nil
	}
	return unavailable(s.deps.Whole(ctx))
}

// clean removes what the store does not need. A failure stops nothing: no content is read there.
func (s *Sealer) clean(ctx context.Context) {
	c, ok := s.deps.Store.(Cleaner)
	if !ok || ctx.Err() != nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	err := c.Clean(bounded)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.uncleaned.Add(1)
	}
	if was := s.littered.Swap(err != nil); err != nil && !was {
		s.deps.Logger.Warn("encrypted contents of erased runs cannot be removed from the cold store's bucket; they are tried again", "error", err)
	}
}

func (s *Sealer) sweep(ctx context.Context) error {
	failed := s.resume(ctx)
	if errors.Is(failed, runlog.ErrUnavailable) || ctx.Err() != nil {
		return failed
	}
	s.begin()
	for more := s.window > 0; more; {
		began := time.Now()
		var err error
		if more, err = s.step(ctx); err != nil {
			failed = errors.Join(failed, err)
			break
		}
		if more { // others need the processor, too
			lifecycle.Wait(ctx, time.Since(began))
		}
	}
	if errors.Is(failed, runlog.ErrUnavailable) || ctx.Err() != nil {
		return failed
	}
	return errors.Join(failed, s.clear(ctx), s.unremovedRuns())
}

func (s *Sealer) begin() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.releasing, s.unremoved, s.blocked = false, nil, false
}

func (s *Sealer) unremovedRuns() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.unremoved
}

// reportDamaged reports a run that is not sealed because its frames or its object are damaged.
func (s *Sealer) reportDamaged(run subject.Run, err error) {
	s.damaged.Add(1)
	s.deps.Logger.Error("a damaged run is not sealed", "tenant", run.Tenant, "run_id", run.RunID, "error", err)
}

// resume seals the runs whose objects are pending since before this process. A run that fails does not
// stop the others, unless the log or the store cannot be reached.
func (s *Sealer) resume(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.resumed {
		return nil
	}
	var failed error
	for cursor := Cursor(""); ; {
		runs, next, err := s.deps.Store.Pending(ctx, cursor, sealedTogether)
		if err != nil {
			return unavailable(err)
		}
		for _, run := range runs {
			if s.known[run] {
				continue
			}
			l, err := s.mark(ctx, run)
			if errors.Is(err, frame.ErrDamaged) {
				l, err = s.again(ctx, run, err)
			}
			switch {
			case err == nil:
				if l != nil {
					l.Released = true // maybe: the earlier process may have released its frames
				}
				s.leave(l)
			case errors.Is(err, ErrNotFound): // erased since
			case errors.Is(err, frame.ErrDamaged):
				s.reportDamaged(run, err)
			case errors.Is(err, runlog.ErrUnavailable), ctx.Err() != nil:
				return errors.Join(failed, err)
			default:
				failed = errors.Join(failed, fmt.Errorf("run %s: %w", run.RunID, err))
			}
		}
		if len(runs) < sealedTogether {
			s.resumed = failed == nil
			return failed
		}
		cursor = next
	}
}

// again stores and marks a run whose pending object is damaged, if the log still has the run. Errors: why
// if it does not.
func (s *Sealer) again(ctx context.Context, run subject.Run, why error) (*leaving, error) {
	o, err := s.encode(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound), errors.Is(err, runlog.ErrSealed):
		return nil, why
	case err != nil:
		return nil, err
	}
	if err := s.deps.Store.Put(ctx, o); err != nil {
		return nil, unavailable(err)
	}
	return s.mark(ctx, run)
}

// step seals some runs.
func (s *Sealer) step(ctx context.Context) (more bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	ends, next, more, err := s.deps.Log.Ended(ctx, s.next, s.deps.Clock().Add(-s.window), sealedTogether)
	if err != nil {
		return false, err
	}
	for len(ends) > 0 {
		objects, n, err := s.read(ctx, ends)
		if err != nil {
			return false, err
		}
		if err := s.seal(ctx, objects); err != nil {
			return false, err
		}
		ends = ends[n:]
	}
	s.next = next
	if !s.blocked { // the end of the sweep tries again, and reports the error
		s.blocked = s.release(ctx) != nil
	}
	return more, nil
}

// read returns the objects of the first of some ended runs, and how many these are. Runs that are
// damaged, or gone, are left out.
func (s *Sealer) read(ctx context.Context, ends []*frame.Frame) (objects []*Object, n int, err error) {
	size := int64(0)
	for n < len(ends) && size < sealedBytes {
		page := make([]*Object, min(readAtATime, len(ends)-n))
		err := together(ctx, len(page), func(ctx context.Context, i int) (err error) {
			run := ends[n+i].Run
			page[i], err = s.encode(ctx, run)
			switch {
			case errors.Is(err, runlog.ErrNotFound), errors.Is(err, runlog.ErrSealed): // erased, or sealed by another process
				return nil
			case errors.Is(err, frame.ErrDamaged):
				s.reportDamaged(run, err)
				return nil
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		for _, o := range page {
			if o != nil {
				objects, size = append(objects, o), size+o.Bytes()
			}
		}
		n += len(page)
	}
	return objects, n, nil
}

// together calls each for n numbers, some of them at the same time.
func together(ctx context.Context, n int, each func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i := range n {
		group.Go(func() error { return each(ctx, i) })
	}
	return group.Wait()
}

// seal stores objects, reads them back, and marks their runs in the log.
func (s *Sealer) seal(ctx context.Context, objects []*Object) error {
	if len(objects) == 0 {
		return nil
	}
	if err := s.deps.Store.Put(ctx, objects...); err != nil {
		return unavailable(err)
	}
	marked := make([]*leaving, len(objects))
	var unread atomic.Bool
	err := together(ctx, len(objects), func(ctx context.Context, i int) (err error) {
		marked[i], err = s.mark(ctx, objects[i].Run)
		switch {
		case errors.Is(err, ErrNotFound): // erased since
			return nil
		case errors.Is(err, frame.ErrDamaged):
			s.reportDamaged(objects[i].Run, err)
			unread.Store(true)
			return nil
		}
		return err
	})
	for _, l := range marked {
		s.leave(l)
	}
	if err != nil || unread.Load() {
		s.resumed = false // the objects without a mark are pending
	}
	return err
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

// mark reads the object of a run back, and marks the run as sealed in the log. It may be repeated. It
// returns nil if the run was erased. Errors: ErrNotFound if the run has no object, frame.ErrDamaged if
// the object is damaged, runlog.ErrUnavailable, runlog.ErrRemovalDenied.
func (s *Sealer) mark(ctx context.Context, run subject.Run) (*leaving, error) {
	d := s.deps
	var (
		end       *frame.Frame
		positions []uint64
		bytes     uint64
	)
	err := walk(ctx, d.Store, run, span{from: -1}, func(frames []*frame.Frame) bool {
		for _, f := range frames {
			end, positions, bytes = f, append(positions, f.Pos), bytes+uint64(len(f.Body))
		}
		return true
	})
	if err != nil {
		return nil, unavailable(err)
	}
	err = d.Log.Seal(ctx, end.Run, end.Head(), positions)
	if errors.Is(err, runlog.ErrConflict) {
		switch _, err := d.Log.Last(ctx, run); {
		case errors.Is(err, runlog.ErrErased):
			return nil, nil //nolint:nilnil // the erasure reads the object, and deletes it
		case err != nil && !errors.Is(err, runlog.ErrNotFound): // the run may be erased, or sealed
			return nil, err
		}
		return nil, unavailable(d.Store.Discard(ctx, run, end.Hash)) // the log is one of before the run's end
	}
	if err != nil {
		return nil, err
	}
	return &leaving{Ref: Ref{Run: end.Run, Hash: end.Hash}, positions: positions, bytes: bytes}, nil
}

// unavailable makes an error of the store one of the log.
func unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	}
	return err
}
