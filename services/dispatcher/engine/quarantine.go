package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/quarantine"
	"waybill.dev/waybill/services/dispatcher/vault"
)

// setAside quarantines a run and ends its delivery: another try would not help, and a
// delivery that is held back takes a place of the queue that another run needs. The
// run is recorded first, and taken off the queue only after that.
func (x *Executor) setAside(ctx context.Context, l *hold, why quarantine.Cause, cause error) {
	f := l.delivery.Frame()
	x.deps.Logger.Error("run quarantined", "run_id", f.Run.RunID, "reason", why.Reason, "tries", why.Tries, "error", cause)
	if x.deps.Quarantine == nil && why.Reason != quarantine.ReasonDamaged {
		x.end(l.end(l.delivery.Retry), f.Run, "retry")
		return
	}
	if x.deps.Quarantine != nil {
		kept := l.keep()
		err := x.deps.Quarantine.Add(ctx, f.Run, why)
		kept()
		if err != nil {
			x.deps.Logger.Warn("run handed back: its quarantine cannot be recorded", "run_id", f.Run.RunID, "error", err)
			x.end(l.end(l.delivery.Retry), f.Run, "retry")
			return
		}
		x.deps.Metrics.Quarantined(why.Reason)
	}
	x.end(l.end(l.delivery.Ack), f.Run, "ack")
}

// Readmit puts a quarantined run back into the queue if it can be loaded and its definition
// is there, and if the runs that it needs can be read. A run that has ended is not put back:
// its secrets are erased and its relatives notified. Errors: frame.ErrDamaged,
// lifecycle.ErrPanic, and the faults of a missing definition and of a later engine.
func (x *Executor) Readmit(ctx context.Context, r subject.Run) (back bool, err error) {
	st, head, err := x.loadWhole(ctx, r)
	switch {
	case errors.Is(err, vault.ErrGone): // the next dispatcher ends it
		last, err := x.deps.Log.Last(ctx, r)
		if err != nil {
			return false, err
		}
		r, head = last.Run, last.Head()
	case err != nil:
		return false, err
	case st.Status.Terminal():
		x.erase(ctx, r, st)
		x.forget(ctx, st.Record)
		return false, x.related(ctx, st)
	default:
		if err := x.relativesWhole(ctx, st, head); err != nil {
			return false, err
		}
		if _, err := x.plan(ctx, st); err != nil {
			return false, err
		}
	}
	err = x.Wake(ctx, r, head)
	return err == nil, err
}

// relativesWhole reports a damaged log of a relative that whoever takes up the run reads: it would
// come back at once. One that the run goes on without keeps nobody away.
func (x *Executor) relativesWhole(ctx context.Context, st *runstate.State, head frame.Head) error {
	rec := st.Record
	var ids []string
	if p := rec.Parent; p != nil && p.Awaited { // it reports to it
		ids = append(ids, p.RunID)
	}
	cut := x.cut(ctx, st)
	switch {
	case errors.Is(cut, frame.ErrDamaged):
		return cut
	case errors.Is(cut, errOrphaned):
		ids = append(append(ids, rec.Parent.RunID), x.mayLive(st)...)
	case errors.Is(cut, errCancelling):
		ids = append(ids, x.mayLive(st)...)
	default:
		ids = append(ids, x.unrecorded(st)...)
		for _, c := range awaited(st) {
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
	read := x.source
	if head.Next < rec.Copied() {
		read = x.history
	}
	if _, err := read(ctx, rec); errors.Is(err, frame.ErrDamaged) {
		return err
	}
	return nil
}
