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
	st, _, err := run.Load(frames)
	if err != nil {
		return nil, err
	}
	return x.reveal(ctx, st, frames)
}

// fold folds the frames of a run's log, with the clear values if it is masked. It refuses a
// run that is not this engine's to go on with; one that has ended goes nowhere.
func (x *Executor) fold(ctx context.Context, frames []*frame.Frame) (*runstate.State, frame.Head, error) {
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

// soundEnds checks the first and the last frame of a run. It costs one read however long the
// run is; the dispatcher that executes the run checks the frames between.
func (x *Executor) soundEnds(ctx context.Context, last *frame.Frame) error {
	first, err := x.deps.Log.First(ctx, last.Run)
	if err != nil {
		return err
	}
	rec, err := first.Record()
	if err != nil {
		return x.sound(ctx, last)
	}
	version := rec.EngineVersion
	events, err := last.Events()
	if err != nil {
		return x.sound(ctx, last)
	}
	for _, e := range events {
		version = max(version, e.Engine())
	}
	return runstate.Refuse(rec.RunID, version)
}

// sound checks all frames of a run.
func (x *Executor) sound(ctx context.Context, last *frame.Frame) error {
	_, _, err := x.load(ctx, last.Run)
	return err
}

// wakable reports whether this engine may wake a run that was checked with a result.
func (x *Executor) wakable(runID string, checked error) (bool, error) {
	switch {
	case fault.CodeOf(checked) == fault.EngineVersionMismatch:
		x.leave(runID, checked)
		return false, nil
	case errors.Is(checked, runlog.ErrNotFound), errors.Is(checked, runlog.ErrUnavailable):
		return false, checked
	case errors.Is(checked, frame.ErrDamaged):
		x.notWoken(runID, checked)
		return false, nil
	default: // the dispatcher that executes the run finds what else is wrong with it
		return true, nil
	}
}
