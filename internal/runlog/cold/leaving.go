package cold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
)

// The frames of a sealed run leave the log in one of two ways; see runlog.Removal. Overwriting them costs
// the server a file for each frame. Released frames stay in a file until the server compacts it, which
// needs a file that it has stopped to append to, and more removed than other bytes in it. So:
//
//   - a few frames, or those of a small log, are overwritten;
//   - else those are released that are far enough from the end of the log, and the others wait.
//
// Frames that wait are overwritten by an erasure, like those of a run that is not sealed.
const (
	// overwriteBytes is how much a sweep may make the server write to overwrite frames.
	overwriteBytes = 256 << 20
	// filesBehind is how many files must lie between a released frame and the end of the log.
	filesBehind = 2
)

// leaving is a sealed run whose frames are still in the log.
type leaving struct {
	Ref

	positions []uint64
	// bytes is the size of the frames' bodies, which the log has at least.
	bytes uint64
	// failures counts attempts to remove the frames, notBefore is the time of the next one.
	failures  int
	notBefore time.Time
}

func (l *leaving) last() uint64 { return l.positions[len(l.positions)-1] }

// leave notes a sealed run whose frames are to be removed; nil is ignored. The caller holds the turn.
func (s *Sealer) leave(l *leaving) {
	if l == nil || s.known[l.Run] {
		return
	}
	s.left = append(s.left, *l)
	s.known[l.Run] = true
}

// ready returns the runs whose frames may be removed now: others failed a short time ago.
func (s *Sealer) ready() (runs []leaving) {
	for _, l := range s.left {
		if l.failures == 0 || !s.deps.Clock().Before(l.notBefore) {
			runs = append(runs, l)
		}
	}
	return runs
}

// release releases the frames that are far enough from the end of the log, unless they are few. The
// caller holds the turn.
func (s *Sealer) release(ctx context.Context) error {
	log, err := s.deps.Log.Extent(ctx)
	if err != nil {
		return err
	}
	runs := s.ready()
	if !s.deps.NeverOverwrite && s.cost(log, runs) <= overwriteBytes {
		return nil
	}
	behind := s.behind()
	var far []leaving
	for _, l := range runs {
		if max(log.Behind(l.last()), behind(l.last())) >= filesBehind*log.FileBytes {
			far = append(far, l)
		}
	}
	s.releasing = s.releasing || len(far) > 0
	return s.drop(ctx, far, runlog.Release)
}

// behind returns a function that adds up the waiting runs which begin after a position. The log has at
// least so many bytes after it.
func (s *Sealer) behind() func(pos uint64) uint64 {
	runs := slices.Clone(s.left)
	slices.SortFunc(runs, func(a, b leaving) int { return cmp.Compare(a.positions[0], b.positions[0]) })
	after := make([]uint64, len(runs)+1)
	for i, l := range slices.Backward(runs) {
		after[i] = after[i+1] + l.bytes
	}
	return func(pos uint64) uint64 {
		i, _ := slices.BinarySearchFunc(runs, pos+1, func(l leaving, at uint64) int { return cmp.Compare(l.positions[0], at) })
		return after[i]
	}
}

// clear removes frames after the last step of a sweep: it overwrites as many as a sweep may. A host on
// which frames get far enough from the end of the log to be released does not overwrite.
func (s *Sealer) clear(ctx context.Context) error {
	for {
		began := time.Now()
		more, err := s.overwrite(ctx)
		if err != nil || !more {
			return err
		}
		lifecycle.Wait(ctx, time.Since(began)) // writers of the log wait while the server overwrites
	}
}

// overwriteTogether is how many runs are overwritten before others have a turn.
const overwriteTogether = 16

// overwrite overwrites the frames of some runs, and reports whether a sweep may overwrite others.
func (s *Sealer) overwrite(ctx context.Context) (more bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.release(ctx); err != nil || s.releasing || s.deps.NeverOverwrite {
		return false, err
	}
	runs := s.ready()
	if len(runs) == 0 {
		return false, nil
	}
	log, err := s.deps.Log.Extent(ctx)
	if err != nil {
		return false, err
	}
	some := runs[:min(overwriteTogether, len(runs))]
	more = len(some) < len(runs) && s.cost(log, runs) <= overwriteBytes
	return more, s.drop(ctx, some, runlog.Overwrite)
}

// cost is how much the server writes to overwrite the frames of runs.
func (*Sealer) cost(log runlog.Extent, runs []leaving) uint64 {
	n := 0
	for _, l := range runs {
		n += len(l.positions)
	}
	return log.OverwriteBytes(n)
}

// drop removes the frames of runs from the log when all readers are past them, and confirms their
// objects. Runs whose frames cannot be removed are put aside. The caller holds the turn.
func (s *Sealer) drop(ctx context.Context, runs []leaving, how runlog.Removal) error {
	if len(runs) == 0 {
		return nil
	}
	pos := uint64(0)
	for _, l := range runs {
		pos = max(pos, l.last())
	}
	if err := s.deps.Past(ctx, pos); err != nil {
		return err
	}
	if how == runlog.Release { // an erasure from here on reports that it does not reach the bytes
		if err := s.deps.Store.Releasing(ctx, refs(runs)...); err != nil {
			return unavailable(err)
		}
	}
	if err := s.whole(ctx); err != nil { // the last moment at which the log still has what the store has lost
		return err
	}
	errs := make([]error, len(runs))
	err := together(ctx, len(runs), func(ctx context.Context, i int) error {
		errs[i] = s.deps.Log.Drop(ctx, runs[i].Run, runs[i].positions, how)
		return ctx.Err()
	})
	if err != nil {
		return err // dropping frames again changes nothing
	}
	var gone []Ref
	removed := map[subject.Run]bool{}
	for i, l := range runs {
		switch {
		case errs[i] == nil:
			l.Released = l.Released || how == runlog.Release
			gone = append(gone, l.Ref)
			removed[l.Run] = true
		case errors.Is(errs[i], runlog.ErrConflict): // erased since: the erasure deletes the object
			removed[l.Run] = true
		}
	}
	if err := s.deps.Store.Confirm(ctx, gone...); err != nil {
		return unavailable(err)
	}
	for i, l := range runs {
		if removed[l.Run] {
			delete(s.known, l.Run)
		} else {
			s.putAside(l.Run, errs[i])
		}
	}
	s.left = slices.DeleteFunc(s.left, func(l leaving) bool { return removed[l.Run] })
	s.countAside()
	s.sealed.Add(int64(len(gone)))
	if how == runlog.Release {
		s.released.Add(int64(len(gone)))
	} else {
		s.overwritten.Add(int64(len(gone)))
	}
	return nil
}

func refs(runs []leaving) []Ref {
	out := make([]Ref, len(runs))
	for i, l := range runs {
		out[i] = l.Ref
	}
	return out
}

// The pause before the frames of a run are tried again doubles from asidePause up to maxAside.
const (
	asidePause = time.Minute
	maxAside   = time.Hour
)

// putAside notes that the frames of a run could not be removed, and reports it at the end of the sweep.
func (s *Sealer) putAside(run subject.Run, why error) {
	s.unremoved = errors.Join(s.unremoved, fmt.Errorf("frames of sealed run %s not removed: %w", run.RunID, why))
	for i := range s.left {
		if l := &s.left[i]; l.Run == run {
			l.notBefore = s.deps.Clock().Add(min(asidePause<<min(l.failures, 10), maxAside))
			l.failures++
			s.deps.Logger.Error("the frames of a sealed run cannot be removed from the run log; they are tried again",
				"tenant", run.Tenant, "run_id", run.RunID, "attempts", l.failures, "error", why)
		}
	}
}

func (s *Sealer) countAside() {
	n := int64(0)
	for _, l := range s.left {
		if l.failures > 0 {
			n++
		}
	}
	s.aside.Store(n)
}
