package engine

// A panic in the fold, a pure node or the run loop ends the run, not the process. It is recovered
// in three places: where a log is folded (version.go), around a session (Execute), and around an
// effect (session.performEffect, spawnFunc).
//
// The run then fails with internal_error. A machine with the run's definition makes the frame, so
// that running nodes end, too. If that panics as well, because the fold itself fails, the frame is
// made without folding: its only event, run.failed, follows the last frame of the log. If that
// frame cannot be appended either, the run is quarantined.

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// contain turns a panic in f into lifecycle.ErrPanic.
func (e *Executor) contain(runID string, f func() error) error {
	return lifecycle.Contain(e.deps.Logger, "run", f, "run_id", runID)
}

// panicMessage is the message of a run that ended because of a panic.
const panicMessage = "the run failed inside the host; its operator finds the cause in the host's log"

// endPanicked ends a run whose execution panicked, unless another live dispatcher owns it: that one
// may be of a release without the defect. Errors: lifecycle.ErrPanic if ending it panics, too,
// frame.ErrDamaged, those of checkOwnership, and those of the log.
func (e *Executor) endPanicked(ctx context.Context, r subject.Run, pos uint64) error {
	return e.endWithRetries(ctx, ending{
		run:    r,
		writer: e.newWriter(),
		mayEnd: func(o frame.Ownership) error { return e.checkOwnership(ctx, r, pos, o) },
		apply: func(m *machine.Machine) {
			now := e.deps.Clock()
			switch m.State().Status {
			case wire.StatusPaused, wire.StatusCancelling: // run.failed may not follow these states
				m.Cancel(now, wire.CancelNote{Reason: string(fault.InternalError), By: "system"})
			default:
				m.EndFailed(now, panicMessage)
			}
		},
	})
}

// ending ends a run outside of a session.
type ending struct {
	run    subject.Run
	writer string
	// mayEnd checks the ownership of the run; nil allows any. The frame follows the checked head, so
	// another owner's claim in between makes the append conflict.
	mayEnd func(o frame.Ownership) error
	// apply makes the events that end the run.
	apply func(m *machine.Machine)
}

// endWithRetries appends the events of an ending, with as much of the run as can be loaded. It
// retries after conflicts.
func (e *Executor) endWithRetries(ctx context.Context, end ending) error {
	for range maxChangeTries {
		err := e.contain(end.run.RunID, func() error { return e.endOnce(ctx, end) })
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
	}
	return runlog.ErrConflict
}

func (e *Executor) endOnce(ctx context.Context, end ending) error {
	last, err := e.deps.Log.Last(ctx, end.run)
	if err != nil {
		return err
	}
	end.run = last.Run
	runID := end.run.RunID
	if last.Kind == subject.End {
		return e.contain(runID, func() error { return e.finishEnded(ctx, last) })
	}
	st, head, err := e.load(ctx, end.run)
	if err == nil {
		err = e.contain(runID, func() error { return e.endWithDefinition(ctx, end, st, head) })
	}
	switch {
	case err == nil, isTransient(err), errors.Is(err, frame.ErrDamaged), needsLaterEngine(err), errors.Is(err, errElsewhere):
		return err
	}
	return e.contain(runID, func() error { return e.endWithoutFold(ctx, end) })
}

// endWithDefinition ends a run with its definition. If the definition is missing, running nodes end
// nevertheless.
func (e *Executor) endWithDefinition(ctx context.Context, end ending, st *runstate.State, head frame.Head) error {
	m := machine.NewWithoutDefinition(e.cfg.Limits, st)
	if plan, err := e.loadPlan(ctx, st); err == nil {
		m = machine.New(plan, e.cfg.Limits, st)
	} else if isTransient(err) {
		return err
	}
	return e.appendEnd(ctx, end, head, m)
}

// endWithoutFold ends a run whose log cannot be folded. Its record, its status and its head are
// known without folding.
func (e *Executor) endWithoutFold(ctx context.Context, end ending) error {
	frames, err := e.deps.Log.Run(ctx, end.run)
	if err != nil {
		return err
	}
	if err := frame.VerifyChain(frames); err != nil {
		return err
	}
	rec, err := frames[0].Record()
	if err != nil {
		return errors.Join(frame.ErrDamaged, err)
	}
	if err := runstate.Refuse(rec.RunID, rec.EngineVersion); err != nil {
		return err
	}
	st, head := runstate.New(rec), frames[len(frames)-1].Head()
	for _, f := range frames {
		head.Ownership = head.After(f)
	}
	st.Next, st.Status = head.Next, openStatus(frames)
	return e.appendEnd(ctx, end, head, machine.NewWithoutDefinition(e.cfg.Limits, st))
}

// openStatus returns the status of an open run, as far as it determines how the run may end.
func openStatus(frames []*frame.Frame) wire.Status {
	status := wire.StatusPending
	for _, f := range frames {
		for _, t := range f.Types {
			switch t {
			case wire.EventRunStarted, wire.EventRunResumed:
				status = wire.StatusRunning
			case wire.EventRunPaused:
				status = wire.StatusPaused
			}
		}
		if n := wire.ParseNote(f.Note); n.Cancel != nil {
			return wire.StatusCancelling
		}
	}
	return status
}

func (e *Executor) appendEnd(ctx context.Context, end ending, head frame.Head, m *machine.Machine) error {
	if end.mayEnd != nil {
		if err := end.mayEnd(head.Ownership); err != nil {
			return err
		}
	}
	end.apply(m)
	at := entry{writer: end.writer, run: end.run, head: head, append: e.deps.Log.Append}
	if _, err := e.append(ctx, at, m); err != nil {
		return err
	}
	e.notifyLocal(m.State())
	e.closeSecrets(ctx, m.State().Record)
	return e.notifyRelatives(ctx, m.State())
}

// finishEnded completes the work after an end frame: it erases the run's data and notifies its
// relatives. If the log cannot be folded, the status of the end is known, but not its outputs.
func (e *Executor) finishEnded(ctx context.Context, last *frame.Frame) error {
	st, _, err := e.load(ctx, last.Run)
	if errors.Is(err, lifecycle.ErrPanic) {
		first, ferr := e.deps.Log.First(ctx, last.Run)
		if ferr != nil {
			return ferr
		}
		rec, ferr := first.Record()
		if ferr != nil {
			return errors.Join(frame.ErrDamaged, ferr)
		}
		st, err = runstate.New(rec), nil
		if st.Status, _ = endStatus(last.Types); st.Status != wire.StatusCancelled {
			st.Status, st.Error = wire.StatusFailed, &wire.NodeError{Code: string(fault.InternalError), Message: panicMessage}
		}
	}
	if err != nil {
		return err
	}
	e.eraseEnded(ctx, last.Run, st)
	e.closeSecrets(ctx, st.Record)
	return e.notifyRelatives(ctx, st)
}
