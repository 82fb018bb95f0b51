package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

// quarantineRun quarantines a run and ends its delivery. A retry would not help, and a delivery
// that is not ended occupies a place of the queue. The run is recorded first, and its delivery
// ended after that.
func (e *Executor) quarantineRun(ctx context.Context, l *delivery, why quarantine.Cause, cause error) {
	f := l.message.Frame()
	e.deps.Logger.Error("run quarantined", "run_id", f.Run.RunID, "reason", why.Reason, "tries", why.Tries, "error", cause)
	if e.deps.Quarantine == nil && why.Reason != quarantine.ReasonDamaged {
		e.logEndFailure(l.endWith(l.message.Retry), f.Run, "retry")
		return
	}
	if e.deps.Quarantine != nil {
		release := l.keepExtended()
		why.Pos = f.Pos
		_ = e.contain(f.Run.RunID, func() error { // without it, the delivered frame counts as the last one
			last, err := e.deps.Log.Last(ctx, f.Run)
			if err == nil {
				why.Pos = last.Pos
			}
			return err
		})
		err := e.deps.Quarantine.Add(ctx, f.Run, why)
		release()
		if err != nil {
			e.deps.Logger.Warn("run handed back: its quarantine cannot be recorded", "run_id", f.Run.RunID, "error", err)
			e.logEndFailure(l.endWith(l.message.Retry), f.Run, "retry")
			return
		}
		e.deps.Metrics.Quarantined(why.Reason)
		e.deps.Forget(f.Run.Tenant, f.Run.RunID)
	}
	e.logEndFailure(l.endWith(l.message.Ack), f.Run, "ack")
}

// isQuarantined reports whether a run is quarantined and has not left the quarantine. last is its last
// frame.
func (e *Executor) isQuarantined(ctx context.Context, last *frame.Frame) (bool, error) {
	if e.deps.Quarantine == nil {
		return false, nil
	}
	return e.deps.Quarantine.Holds(ctx, last.Run, last.Pos)
}

// quarantineDamaged quarantines a run that needs a wake frame and whose log is damaged. A check of the
// quarantine wakes it once its log is repaired.
func (e *Executor) quarantineDamaged(ctx context.Context, r subject.Run, cause error) error {
	e.logOnce(r.RunID, "overdue run not woken: its log is damaged", cause)
	if e.deps.Quarantine == nil {
		return nil
	}
	if held, err := e.deps.Quarantine.Holds(ctx, r, 0); err != nil || held {
		return err
	}
	if err := e.deps.Quarantine.Add(ctx, r, quarantine.Cause{Reason: quarantine.ReasonDamaged}); err != nil {
		return err
	}
	e.deps.Metrics.Quarantined(quarantine.ReasonDamaged)
	return nil
}

// Readmit enqueues a quarantined run if it can be loaded, its definition exists, and the runs that
// it depends on can be read. For a run that has ended it erases the run's secrets and notifies its
// relatives instead. Errors: frame.ErrDamaged, lifecycle.ErrPanic, and the faults of a missing
// definition and of a later engine.
func (e *Executor) Readmit(ctx context.Context, r subject.Run) (back bool, err error) {
	st, head, err := e.loadWhole(ctx, r)
	switch {
	case errors.Is(err, cleartext.ErrGone): // the next dispatcher ends it
		last, err := e.deps.Log.Last(ctx, r)
		if err != nil {
			return false, err
		}
		r, head = last.Run, last.Head()
	case err != nil:
		return false, err
	case st.Status.Terminal():
		e.eraseEnded(ctx, r, st)
		e.closeSecrets(ctx, st.Record)
		return false, e.notifyRelatives(ctx, st)
	default:
		if err := e.checkRelatives(ctx, st, head); err != nil {
			return false, err
		}
		if _, err := e.loadPlan(ctx, st); err != nil {
			return false, err
		}
	}
	err = e.Wake(ctx, r, head)
	return err == nil, err
}

// checkRelatives returns the error of a damaged relative whose log the run's next session reads:
// the run would be quarantined again immediately. Relatives that the run can continue without are
// not checked.
func (e *Executor) checkRelatives(ctx context.Context, st *runstate.State, head frame.Head) error {
	rec := st.Record
	var ids []string
	if p := rec.Parent; p != nil && p.Awaited { // the run reports to it
		ids = append(ids, p.RunID)
	}
	cut := e.checkMustEnd(ctx, st)
	switch {
	case errors.Is(cut, frame.ErrDamaged):
		return cut
	case errors.Is(cut, errOrphaned):
		ids = append(append(ids, rec.Parent.RunID), e.possiblyLiveChildren(st)...)
	case errors.Is(cut, errCancelling):
		ids = append(ids, e.possiblyLiveChildren(st)...)
	default:
		ids = append(ids, e.unrecordedChildren(st)...)
		for _, c := range awaitedChildren(st) {
			ids = append(ids, c.RunID)
		}
	}
	for _, id := range ids {
		if _, err := e.viewWhole(ctx, subject.Run{Tenant: rec.Owner.Tenant, RunID: id}); errors.Is(err, frame.ErrDamaged) {
			return err
		}
	}
	if !e.needsSource(st) {
		return nil
	}
	read := e.readSource
	if head.Next < rec.Copied() {
		read = e.readHistory
	}
	if _, err := read(ctx, rec); errors.Is(err, frame.ErrDamaged) {
		return err
	}
	return nil
}
