package cold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Hot is the run log that runs are sealed from.
type Hot interface {
	runlog.Log
	runlog.Pager
	runlog.TenantPager
	runlog.Follower
	runlog.Eraser
	runlog.Sealer
}

// Past returns when every reader of this host that follows the log has read it up to a position. Errors:
// runlog.ErrUnavailable if one does not get there in time.
type Past func(ctx context.Context, pos uint64) error

// Log is a run log whose sealed runs are read from a store. Everything else is that of the log below.
type Log struct {
	Hot

	store  Store
	past   Past
	faults *Faults
	// doubted: the store may lack sealed runs.
	doubted atomic.Bool

	// erasing is held for reading by an erasure, and for writing while there must be none.
	erasing sync.RWMutex
}

// NewLog returns a log over both. An erasure of a sealed run waits for past before it removes the object,
// because a reader needs it to find what it has of the run.
func NewLog(hot Hot, store Store, past Past, faults *Faults) *Log {
	return &Log{Hot: hot, store: store, past: past, faults: faults}
}

// Doubt makes erasures of sealed runs wait until Trust is called: a store that lacks runs will be restored,
// and would have erased ones again.
func (l *Log) Doubt() { l.doubted.Store(true) }

// Trust ends Doubt.
func (l *Log) Trust() { l.doubted.Store(false) }

// HoldErasures waits for the end of a removal and keeps others from beginning until resume is called: they
// return runlog.ErrUnavailable, and are repeated.
func (l *Log) HoldErasures() (resume func()) {
	l.erasing.Lock()
	return l.erasing.Unlock
}

// Lost returns the number of records that the log below has lost, if it counts them.
func (l *Log) Lost() uint64 {
	if hot, ok := l.Hot.(interface{ Lost() uint64 }); ok {
		return hot.Lost()
	}
	return 0
}

// Append stores a frame; see runlog.Appender.
func (l *Log) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	pos, err := l.Hot.Append(ctx, f, after)
	return l.settle(ctx, f, after, pos, err)
}

// Stage stores a frame without waiting for the disk; see runlog.Stager.
func (l *Log) Stage(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	pos, err := runlog.Stage(ctx, l.Hot, f, after)
	return l.settle(ctx, f, after, pos, err)
}

// Keep waits for the disk; see runlog.Stager.
func (l *Log) Keep(ctx context.Context, pos uint64) error { return runlog.Keep(ctx, l.Hot, pos) }

// settle resolves an append to a sealed run: was the frame stored by an earlier attempt whose
// acknowledgement was lost?
func (l *Log) settle(ctx context.Context, f *frame.Frame, after, pos uint64, err error) (uint64, error) {
	if !errors.Is(err, runlog.ErrSealed) {
		return pos, err
	}
	frames, rerr := read(ctx, l.store, f.Run, span{pos: after, from: -1}, unlimited)
	if rerr != nil {
		return 0, l.failure(ctx, f.Run, rerr)
	}
	if i := slices.IndexFunc(frames, func(g *frame.Frame) bool { return g.Pos > after }); i >= 0 && frames[i].Hash == f.Hash {
		return frames[i].Pos, nil
	}
	return 0, err
}

// Run returns all frames of a run; see runlog.Reader.
func (l *Log) Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	frames, err := l.Hot.Run(ctx, run)
	if !errors.Is(err, runlog.ErrSealed) {
		return frames, err
	}
	return l.after(ctx, run, 0, unlimited)
}

// After returns later frames of a run; see runlog.Reader.
func (l *Log) After(ctx context.Context, run subject.Run, pos uint64) ([]*frame.Frame, error) {
	frames, err := l.Hot.After(ctx, run, pos)
	if !errors.Is(err, runlog.ErrSealed) {
		return frames, err
	}
	return l.orErased(l.after(ctx, run, pos, unlimited))
}

// Page returns some later frames of a run; see runlog.Pager.
func (l *Log) Page(ctx context.Context, run subject.Run, pos uint64, n int) ([]*frame.Frame, error) {
	frames, err := l.Hot.Page(ctx, run, pos, n)
	if !errors.Is(err, runlog.ErrSealed) {
		return frames, err
	}
	end := func(frames []*frame.Frame) int {
		size := 0
		for i, f := range frames {
			if size += len(f.Body); i+1 == n || size >= runlog.PageBytes {
				return i + 1
			}
		}
		return 0
	}
	later := func(frames []*frame.Frame) bool { return end(after(frames, pos)) > 0 }
	frames, err = l.orErased(l.after(ctx, run, pos, later))
	if i := end(frames); i > 0 {
		frames = frames[:i]
	}
	return frames, err
}

// after reads frames after a position from the store.
func (l *Log) after(ctx context.Context, run subject.Run, pos uint64, enough limit) ([]*frame.Frame, error) {
	frames, err := read(ctx, l.store, run, span{pos: pos, from: -1}, enough)
	if err != nil {
		return nil, l.failure(ctx, run, err)
	}
	return after(frames, pos), nil
}

func after(frames []*frame.Frame, pos uint64) []*frame.Frame {
	for len(frames) > 0 && frames[0].Pos <= pos {
		frames = frames[1:]
	}
	return frames
}

// orErased returns no frames for a run that was erased during a read of later frames.
func (*Log) orErased(frames []*frame.Frame, err error) ([]*frame.Frame, error) {
	if errors.Is(err, runlog.ErrErased) {
		return nil, nil
	}
	return frames, err
}

// First returns the frame of a run's record; see runlog.Reader.
func (l *Log) First(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	f, err := l.Hot.First(ctx, run)
	if !errors.Is(err, runlog.ErrSealed) {
		return f, err
	}
	frames, err := l.after(ctx, run, 0, func([]*frame.Frame) bool { return true })
	if err != nil {
		return nil, err
	}
	return frames[0], nil
}

// Last returns the last frame of a run; see runlog.Reader.
func (l *Log) Last(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	f, err := l.Hot.Last(ctx, run)
	if !errors.Is(err, runlog.ErrSealed) {
		return f, err
	}
	if f, err = last(ctx, l.store, run); err != nil {
		return nil, l.failure(ctx, run, err)
	}
	return f, nil
}

// Remaining returns the frames of a marked run that are still there; see runlog.Eraser. Those that only a
// damaged or lost object has are left out, and reported.
func (l *Log) Remaining(ctx context.Context, mark *frame.Frame) ([]*frame.Frame, error) {
	if err := l.erasable(mark); err != nil {
		return nil, err
	}
	frames, lost, err := salvage(ctx, l.store, mark.Run)
	switch {
	case errors.Is(err, ErrNotFound) && (errors.Is(err, ErrDeleted) || !ofSealed(mark)):
		return l.Hot.Remaining(ctx, mark)
	case errors.Is(err, ErrNotFound):
		lost = err
	case err != nil:
		return nil, l.failure(ctx, mark.Run, err)
	case lost == nil:
		return frames, nil
	}
	left, err := l.Hot.Remaining(ctx, mark)
	if err != nil {
		return nil, err
	}
	frames = append(frames, left...)
	slices.SortFunc(frames, func(a, b *frame.Frame) int { return cmp.Compare(a.Pos, b.Pos) })
	frames = slices.CompactFunc(frames, func(a, b *frame.Frame) bool { return a.Pos == b.Pos })
	whole := len(frames) > 0 && frames[len(frames)-1].Kind == subject.End && frame.VerifyChain(frames) == nil
	if !whole && mark.Pos > 0 { // a mark of the log, not a question whether the run is gone
		l.faults.partial(mark.Run, "a sealed run is erased that cannot be read as a whole: assets and keys that only its lost events name stay",
			"frames", len(frames), "error", lost)
	}
	return frames, nil
}

// ofSealed reports whether the erased run was sealed: then its mark lists no positions.
func ofSealed(mark *frame.Frame) bool {
	of, err := mark.Erasure()
	return err == nil && len(of.Positions) == 0
}

// Purge removes a marked run; see runlog.Eraser. The object is deleted also if there is none: a sealer that
// read the run before must not store it.
func (l *Log) Purge(ctx context.Context, mark *frame.Frame) error {
	if !l.erasing.TryRLock() {
		return fmt.Errorf("%w: runs are not erased while a backup is written", runlog.ErrUnavailable)
	}
	defer l.erasing.RUnlock()
	if err := l.erasable(mark); err != nil {
		return err
	}
	switch _, _, err := l.store.Blocks(ctx, mark.Run); {
	case err == nil, errors.Is(err, frame.ErrDamaged):
		if err := l.past(ctx, mark.Pos); err != nil {
			return err
		}
	case !errors.Is(err, ErrNotFound):
		return l.failure(ctx, mark.Run, err)
	}
	err := l.deleteObject(ctx, mark)
	if errors.Is(err, frame.ErrDamaged) {
		l.faults.partial(mark.Run, "bytes of an erased run may be left in the cold store, which is damaged", "error", err)
	}
	if err != nil && (errors.Is(err, ErrUnavailable) || !errors.Is(err, frame.ErrDamaged)) {
		return l.failure(ctx, mark.Run, err)
	}
	return l.Hot.Purge(ctx, mark)
}

// deleteObject deletes the object of a marked run. It reports a requested erasure that does not reach the
// bytes of frames which were deleted without overwriting.
func (l *Log) deleteObject(ctx context.Context, mark *frame.Frame) error {
	of, err := mark.Erasure()
	if err != nil || of.Cause == frame.Expired { // an expired run is never overwritten
		return l.store.Delete(ctx, mark.Run)
	}
	released, _ := l.store.Released(ctx, mark.Run) // Delete reports the error
	err = l.store.Delete(ctx, mark.Run)
	if still, _ := l.store.Released(ctx, mark.Run); released && !still {
		l.faults.unboundedErasure(mark.Run)
	}
	return err
}
