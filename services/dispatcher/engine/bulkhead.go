package engine

// A panic in the fold, a pure node or the run loop ends the run, not the process.
// It is contained in three places: where a log is folded (engine.go), around a
// session (Execute), and around an effect (session.perform, spawning).
//
// The run then ends as failed with internal_error. The frame is made by a machine
// of the run's definition, so that nodes at work end too. If that panics as well,
// because the fold is what fails, the frame is made without folding: its only
// event, run.failed, follows the last frame of the log. If even that cannot be
// appended, the run is quarantined.

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
func (x *Executor) contain(runID string, f func() error) error {
	return lifecycle.Contain(x.deps.Logger, "run", f, "run_id", runID)
}

// panicMessage is the message of a run that ended because of a panic.
const panicMessage = "the run failed inside the host; its operator finds the cause in the host's log"

// endPanicked ends a run whose execution panicked. Errors: lifecycle.ErrPanic if the
// run cannot be ended either, frame.ErrDamaged, and those of the log.
func (x *Executor) endPanicked(ctx context.Context, r subject.Run, pos uint64) error {
	if _, head, err := x.load(ctx, r); err == nil {
		if err := x.checkOwnership(ctx, r, pos, head.Ownership); err != nil {
			return err
		}
	}
	return x.endWithRetries(ctx, r, x.newWriter(), func(m *machine.Machine) {
		now := x.deps.Clock()
		switch m.State().Status {
		case wire.StatusPaused, wire.StatusCancelling: // run.failed may not follow these
			m.Cancel(now, wire.CancelNote{Reason: string(fault.InternalError), By: "system"})
		default:
			m.EndFailed(now, panicMessage)
		}
	})
}

// endWithRetries appends what end makes the machine emit, with as much of the run as can
// be loaded.
func (x *Executor) endWithRetries(ctx context.Context, r subject.Run, writer string, end func(m *machine.Machine)) error {
	for range maxChangeTries {
		err := x.contain(r.RunID, func() error { return x.endOnce(ctx, r, writer, end) })
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
	}
	return runlog.ErrConflict
}

func (x *Executor) endOnce(ctx context.Context, r subject.Run, writer string, end func(m *machine.Machine)) error {
	last, err := x.deps.Log.Last(ctx, r)
	if err != nil {
		return err
	}
	r = last.Run
	if last.Kind == subject.End {
		return x.contain(r.RunID, func() error { return x.finishEnded(ctx, last) })
	}
	st, head, err := x.load(ctx, r)
	if err == nil {
		err = x.contain(r.RunID, func() error { return x.endWithDefinition(ctx, r, writer, st, head, end) })
	}
	if err == nil || isTransient(err) || errors.Is(err, frame.ErrDamaged) || needsLaterEngine(err) {
		return err
	}
	return x.contain(r.RunID, func() error { return x.endWithoutFold(ctx, r, writer, end) })
}

// endWithDefinition ends a run by its definition. Without one its nodes end all the same.
func (x *Executor) endWithDefinition(ctx context.Context, r subject.Run, writer string, st *runstate.State, head frame.Head, end func(m *machine.Machine)) error {
	m := machine.NewWithoutDefinition(x.cfg.Limits, st)
	if plan, err := x.loadPlan(ctx, st); err == nil {
		m = machine.New(plan, x.cfg.Limits, st)
	} else if isTransient(err) {
		return err
	}
	return x.appendEnd(ctx, r, writer, head, m, end)
}

// endWithoutFold ends a run whose log cannot be folded: its record, its status and where
// its log ends are known without that.
func (x *Executor) endWithoutFold(ctx context.Context, r subject.Run, writer string, end func(m *machine.Machine)) error {
	frames, err := x.deps.Log.Run(ctx, r)
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
	st.Next, st.Status = head.Next, openStatus(frames)
	return x.appendEnd(ctx, r, writer, head, machine.NewWithoutDefinition(x.cfg.Limits, st), end)
}

// openStatus is the status of a run that has not ended, as far as it decides how the
// run may end.
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

func (x *Executor) appendEnd(ctx context.Context, r subject.Run, writer string, head frame.Head, m *machine.Machine, end func(m *machine.Machine)) error {
	end(m)
	if _, err := x.append(ctx, entry{writer: writer, run: r, head: head, append: x.deps.Log.Append}, m); err != nil {
		return err
	}
	x.notifyLocal(m.State())
	x.closeSecrets(ctx, m.State().Record)
	return x.notifyRelatives(ctx, m.State())
}

// finishEnded does what follows an end that is in the log. Of a log that cannot be
// folded, it is known how the run ended and not with what.
func (x *Executor) finishEnded(ctx context.Context, last *frame.Frame) error {
	st, _, err := x.load(ctx, last.Run)
	if errors.Is(err, lifecycle.ErrPanic) {
		first, ferr := x.deps.Log.First(ctx, last.Run)
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
	x.eraseEnded(ctx, last.Run, st)
	x.closeSecrets(ctx, st.Record)
	return x.notifyRelatives(ctx, st)
}
