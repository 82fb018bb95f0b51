package cold

import (
	"context"
	"errors"
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

// release releases the frames that are far enough from the end of the log, unless they are few. The
// caller holds the turn.
func (s *Sealer) release(ctx context.Context) error {
	log, err := s.deps.Log.Extent(ctx)
	if err != nil {
		return err
	}
	if s.cost(log, s.left) <= overwriteBytes {
		return nil
	}
	var far []leaving
	for _, l := range s.left {
		if log.Behind(l.last()) >= filesBehind*log.FileBytes {
			far = append(far, l)
		}
	}
	s.releasing = s.releasing || len(far) > 0
	return s.drop(ctx, far, runlog.Release)
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
	if err := s.release(ctx); err != nil || len(s.left) == 0 || s.releasing {
		return false, err
	}
	log, err := s.deps.Log.Extent(ctx)
	if err != nil {
		return false, err
	}
	some := s.left[:min(overwriteTogether, len(s.left))]
	more = len(some) < len(s.left) && s.cost(log, s.left) <= overwriteBytes
	return more, s.drop(ctx, slices.Clone(some), runlog.Overwrite)
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
// objects. The caller holds the turn.
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
	refs := make([]*Ref, len(runs))
	err := together(ctx, len(runs), func(ctx context.Context, i int) error {
		err := s.deps.Log.Drop(ctx, runs[i].Run, runs[i].positions, how)
		if err == nil {
			refs[i] = &runs[i].Ref
		}
		if errors.Is(err, runlog.ErrConflict) { // erased since: the erasure deletes the object
			return nil
		}
		return err
	})
	if err != nil {
		return err // dropping frames again changes nothing
	}
	var gone []Ref
	for _, ref := range refs {
		if ref != nil {
			gone = append(gone, *ref)
		}
	}
	if err := s.deps.Store.Confirm(ctx, gone...); err != nil {
		return unavailable(err)
	}
	removed := make(map[subject.Run]bool, len(runs))
	for _, l := range runs {
		removed[l.Run] = true
		delete(s.known, l.Run)
	}
	s.left = slices.DeleteFunc(s.left, func(l leaving) bool { return removed[l.Run] })
	s.sealed.Add(int64(len(gone)))
	if how == runlog.Release {
		s.released.Add(int64(len(gone)))
	} else {
		s.overwritten.Add(int64(len(gone)))
	}
	return nil
}
