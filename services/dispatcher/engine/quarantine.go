package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/cleartext"
	"waybill.dev/waybill/services/dispatcher/quarantine"
)

// quarantineRun quarantines a run and ends its delivery: another try would not help, and a
// delivery that is held back takes a place of the queue that another run needs. The
// run is recorded first, and taken off the queue only after that.
func (x *Executor) quarantineRun(ctx context.Context, l *delivery, why quarantine.Cause, cause error) {
	f := l.message.Frame()
	x.deps.Logger.Error("run quarantined", "run_id", f.Run.RunID, "reason", why.Reason, "tries", why.Tries, "error", cause)
	if x.deps.Quarantine == nil && why.Reason != quarantine.ReasonDamaged {
		x.logEndFailure(l.endWith(l.message.Retry), f.Run, "retry")
		return
	}
	if x.deps.Quarantine != nil {
		kept := l.keepExtended()
		err := x.deps.Quarantine.Add(ctx, f.Run, why)
		kept()
		if err != nil {
			x.deps.Logger.Warn("run handed back: its quarantine cannot be recorded", "run_id", f.Run.RunID, "error", err)
			x.logEndFailure(l.endWith(l.message.Retry), f.Run, "retry")
			return
		}
		x.deps.Metrics.Quarantined(why.Reason)
	}
	x.logEndFailure(l.endWith(l.message.Ack), f.Run, "ack")
}

// Readmit puts a quarantined run back into the queue if it can be loaded and its definition
// is there, and if the runs that it needs can be read. A run that has ended is not put back:
// its secrets are erased and its relatives notified. Errors: frame.ErrDamaged,
// lifecycle.ErrPanic, and the faults of a missing definition and of a later engine.
func (x *Executor) Readmit(ctx context.Context, r subject.Run) (back bool, err error) {
	st, head, err := x.loadWhole(ctx, r)
	switch {
	case errors.Is(err, cleartext.ErrGone): // the next dispatcher ends it
		last, err := x.deps.Log.Last(ctx, r)
		if err != nil {
			return false, err
		}
		r, head = last.Run, last.Head()
	case err != nil:
		return false, err
	case st.Status.Terminal():
		x.eraseEnded(ctx, r, st)
		x.closeSecrets(ctx, st.Record)
		return false, x.notifyRelatives(ctx, st)
	default:
		if err := x.checkRelatives(ctx, st, head); err != nil {
			return false, err
		}
		if _, err := x.loadPlan(ctx, st); err != nil {
			return false, err
		}
	}
	err = x.Wake(ctx, r, head)
	return err == nil, err
}

// checkRelatives reports a damaged log of a relative that whoever takes up the run reads: it would
// come back at once. One that the run goes on without keeps nobody away.
func (x *Executor) checkRelatives(ctx context.Context, st *runstate.State, head frame.Head) error {
	rec := st.Record
	var ids []string
	if p := rec.Parent; p != nil && p.Awaited { // it reports to it
		ids = append(ids, p.RunID)
	}
	cut := x.checkMustEnd(ctx, st)
	switch {
	case errors.Is(cut, frame.ErrDamaged):
		return cut
	case errors.Is(cut, errOrphaned):
		ids = append(append(ids, rec.Parent.RunID), x.possiblyLiveChildren(st)...)
	case errors.Is(cut, errCancelling):
		ids = append(ids, x.possiblyLiveChildren(st)...)
	default:
		ids = append(ids, x.unrecordedChildren(st)...)
		for _, c := range awaitedChildren(st) {
			ids = append(ids, c.RunID)
		}
	}
	for _, id := range ids {
		if _, err := x.viewWhole(ctx, subject.Run{Tenant: rec.Owner.Tenant, RunID: id}); errors.Is(err, frame.ErrDamaged) {
			return err
		}
	}
	if !x.needsSource(st) {
		return nil
	}
	read := x.readSource
	if head.Next < rec.Copied() {
		read = x.readHistory
	}
	if _, err := read(ctx, rec); errors.Is(err, frame.ErrDamaged) {
		return err
	}
	return nil
}
