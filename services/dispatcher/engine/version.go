package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
)

// load folds a run for a caller that continues or changes it, from a snapshot if there is one.
// Errors: lifecycle.ErrPanic, also of the functions below.
func (e *Executor) load(ctx context.Context, r subject.Run) (*runstate.State, frame.Head, error) {
	return e.loadWith(ctx, r, func() (snapshot.Folded, error) { return e.deps.Snapshots.Read(ctx, r, snapshot.Latest) })
}

// loadWhole is load from all frames of the log.
func (e *Executor) loadWhole(ctx context.Context, r subject.Run) (*runstate.State, frame.Head, error) {
	return e.loadWith(ctx, r, func() (snapshot.Folded, error) { return e.deps.Snapshots.FoldAll(ctx, r) })
}

func (e *Executor) loadWith(
	ctx context.Context, r subject.Run, read func() (snapshot.Folded, error),
) (st *runstate.State, head frame.Head, err error) {
	err = e.contain(r.RunID, func() error {
		f, err := read()
		st, head, err = e.resumableState(ctx, f, err)
		return err
	})
	return st, head, err
}

// view folds a run for a caller that only reads it: a fold ignores unknown events.
func (e *Executor) view(ctx context.Context, r subject.Run) (*runstate.State, error) {
	return e.viewWith(ctx, r, func() (snapshot.Folded, error) { return e.deps.Snapshots.Read(ctx, r, snapshot.Latest) })
}

// viewWhole is view from all frames of the log.
func (e *Executor) viewWhole(ctx context.Context, r subject.Run) (*runstate.State, error) {
	return e.viewWith(ctx, r, func() (snapshot.Folded, error) { return e.deps.Snapshots.FoldAll(ctx, r) })
}

func (e *Executor) viewWith(
	ctx context.Context, r subject.Run, read func() (snapshot.Folded, error),
) (st *runstate.State, err error) {
	err = e.contain(r.RunID, func() error {
		f, err := read()
		if err != nil {
			return err
		}
		st, err = e.foldCleartext(ctx, f.State, f.Frames)
		return err
	})
	return st, err
}

// resumableState returns a folded run, with its clear values if it is masked. err is the error of
// the fold. A run of a later engine is an error, unless it has ended.
func (e *Executor) resumableState(
	ctx context.Context, f snapshot.Folded, err error,
) (*runstate.State, frame.Head, error) {
	if err != nil && len(f.Frames) > 0 {
		err = errors.Join(laterEngineError(f.Frames[0]), err)
	}
	if err != nil {
		return nil, frame.Head{}, err
	}
	st := f.State
	if !st.Status.Terminal() {
		if err := runstate.Refuse(st.Record.RunID, st.EngineVersion); err != nil {
			return nil, frame.Head{}, err
		}
	}
	st, err = e.foldCleartext(ctx, st, f.Frames)
	return st, f.Head, err
}

// laterEngineError is the error of a log that only a later engine can read, as opposed to a damaged
// one.
func laterEngineError(first *frame.Frame) error {
	rec, err := first.Record()
	if err != nil {
		return nil //nolint:nilerr // the failed fold reports the frame's error
	}
	return runstate.Refuse(rec.RunID, rec.EngineVersion)
}

// logKey identifies a message that was logged about a run.
type logKey struct{ runID, message string }

// maxLogged limits the remembered messages.
const maxLogged = 1024

// logNeedsLaterEngine logs once that a run needs a newer dispatcher. It stays in the queue, with a
// growing delay, until one receives it.
func (e *Executor) logNeedsLaterEngine(runID string, err error) {
	e.logOnce(runID, "run left to a newer dispatcher", err)
}

// logOnce logs a message about a run once.
func (e *Executor) logOnce(runID, message string, err error) {
	e.mu.Lock()
	r := logKey{runID, message}
	logged := e.logged[r]
	if !logged {
		if len(e.logged) >= maxLogged {
			clear(e.logged)
		}
		e.logged[r] = true
	}
	e.mu.Unlock()
	if !logged {
		e.deps.Logger.Warn(message, "run_id", runID, "error", err)
	}
}

// checkEnds checks the first and the last frame of a run. That costs one read for any length; the
// dispatcher that executes the run checks the frames in between.
func (e *Executor) checkEnds(ctx context.Context, last *frame.Frame) error {
	first, err := e.deps.Log.First(ctx, last.Run)
	if err != nil {
		return err
	}
	rec, err := first.Record()
	if err != nil {
		return e.checkAllFrames(ctx, last)
	}
	version := rec.EngineVersion
	events, err := last.Events()
	if err != nil {
		return e.checkAllFrames(ctx, last)
	}
	for _, event := range events {
		version = max(version, event.Engine())
	}
	return runstate.Refuse(rec.RunID, version)
}

// checkAllFrames checks all frames of a run.
func (e *Executor) checkAllFrames(ctx context.Context, last *frame.Frame) error {
	_, _, err := e.load(ctx, last.Run)
	return err
}

// mayWake reports whether this engine may wake a run, given the result of its check.
func (e *Executor) mayWake(ctx context.Context, r subject.Run, checked error) (bool, error) {
	switch {
	case fault.CodeOf(checked) == fault.EngineVersionMismatch:
		e.logNeedsLaterEngine(r.RunID, checked)
		return false, nil
	case errors.Is(checked, runlog.ErrNotFound), errors.Is(checked, runlog.ErrUnavailable):
		return false, checked
	case errors.Is(checked, frame.ErrDamaged):
		return false, e.quarantineDamaged(ctx, r, checked)
	default: // the dispatcher that executes the run finds other errors
		return true, nil
	}
}
