package execute

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/run"
)

// load folds a run from its log, for whoever goes on with it or changes it.
func (x *Executor) load(ctx context.Context, r subject.Run) (*runstate.State, frame.Head, error) {
	frames, err := x.deps.Log.Run(ctx, r)
	if err != nil {
		return nil, frame.Head{}, err
	}
	return x.fold(ctx, frames)
}

// view folds a run from its log, for whoever only looks at it: a fold leaves out what it
// does not know.
func (x *Executor) view(ctx context.Context, r subject.Run) (*runstate.State, error) {
	frames, err := x.deps.Log.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	var st *runstate.State
	err = x.contain(frames[0].Run.RunID, func() error {
		if st, _, err = run.Load(frames); err != nil {
			return err
		}
		st, err = x.reveal(ctx, st, frames)
		return err
	})
	return st, err
}

// fold folds the frames of a run's log, with the clear values if it is masked. It refuses a
// run that is not this engine's to go on with; one that has ended goes nowhere. Errors:
// lifecycle.ErrPanic.
func (x *Executor) fold(ctx context.Context, frames []*frame.Frame) (st *runstate.State, head frame.Head, err error) {
	err = x.contain(frames[0].Run.RunID, func() error {
		st, head, err = x.foldUncontained(ctx, frames)
		return err
	})
	return st, head, err
}

func (x *Executor) foldUncontained(ctx context.Context, frames []*frame.Frame) (*runstate.State, frame.Head, error) {
	st, head, err := run.Load(frames)
	if err != nil {
		return nil, frame.Head{}, errors.Join(ofLater(frames[0]), err)
	}
	if !st.Status.Terminal() {
		if err := runstate.Refuse(st.Record.RunID, st.EngineVersion); err != nil {
			return nil, frame.Head{}, err
		}
	}
	st, err = x.reveal(ctx, st, frames)
	return st, head, err
}

// ofLater tells a log that only a later engine can read from a damaged one.
func ofLater(first *frame.Frame) error {
	rec, err := first.Record()
	if err != nil {
		return nil //nolint:nilerr // what is wrong with the frame is told by whoever could not fold it
	}
	return runstate.Refuse(rec.RunID, rec.EngineVersion)
}

// remark is what was said of a run that was left.
type remark struct{ runID, what string }

// maxLeft bounds the remarks that are remembered.
const maxLeft = 1024

// leave says once that a run is not taken up here. It stays in the queue, whose growing
// delay keeps it from coming back at once, until a newer dispatcher is handed it.
func (x *Executor) leave(runID string, err error) {
	x.once(runID, "run left to a newer dispatcher", err)
}

// once says once of a run why nothing is done with it, for each such reason.
func (x *Executor) once(runID, what string, err error) {
	x.mu.Lock()
	r := remark{runID, what}
	said := x.left[r]
	if !said {
		if len(x.left) >= maxLeft {
			clear(x.left)
		}
		x.left[r] = true
	}
	x.mu.Unlock()
	if !said {
		x.deps.Logger.Warn(what, "run_id", runID, "error", err)
	}
}

// notWoken says once that nothing is added to a damaged log; the run is still overdue once it is
// whole.
func (x *Executor) notWoken(runID string, err error) {
	x.once(runID, "overdue run not woken: its log is damaged", err)
}

// wakable reports whether a run that nobody watches over may be woken by this engine.
func (x *Executor) wakable(ctx context.Context, r subject.Run) (bool, error) {
	_, _, err := x.load(ctx, r)
	switch {
	case fault.CodeOf(err) == fault.EngineVersionMismatch:
		x.leave(r.RunID, err)
		return false, nil
	case errors.Is(err, runlog.ErrNotFound), errors.Is(err, runlog.ErrUnavailable):
		return false, err
	case errors.Is(err, frame.ErrDamaged):
		x.notWoken(r.RunID, err)
		return false, nil
	default: // whoever takes it up finds out what is wrong with it
		return true, nil
	}
}
