package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// Cancel ends a run and those of its children that end with it. already reports that it had ended.
// A run whose log records the cancellation ends later, without this caller.
func (e *Executor) Cancel(
	ctx context.Context, tenant, runID, reason, by string,
) (st *runstate.State, already bool, err error) {
	always := func(*wire.RunRecord) bool { return true }
	st, already, err = e.cancel(ctx, tenant, runID, wire.CancelNote{Reason: reason, By: by}, always)
	if err != nil && st != nil && st.Cancelling != nil {
		e.deps.Logger.Warn("relatives of a cancelled run not notified yet; the next delivery does",
			"run_id", runID, "error", err)
		return st, false, nil
	}
	return st, already, err
}

// cancel ends a run if may allows it. A run without parent and children ends immediately. For any
// other run a cancellation note is appended first, in a frame that enqueues the run. A process that
// dies while it cancels the children leaves that delivery to the next dispatcher.
func (e *Executor) cancel(
	ctx context.Context, tenant, runID string, c wire.CancelNote, may func(*wire.RunRecord) bool,
) (st *runstate.State, already bool, err error) {
	st, err = e.changeRun(ctx, tenant, runID, func(m *machine.Machine, now time.Time) error {
		st := m.State()
		switch {
		case st.Status.Terminal() || !may(st.Record):
			return errNothing
		case st.Status == wire.StatusCancelling:
			return nil
		}
		m.Begin(now)
		if st.Record.Parent == nil && len(e.possiblyLiveChildren(st)) == 0 {
			m.Cancel(now, c)
		} else {
			m.RequestCancel(c)
		}
		return nil
	})
	switch {
	case errors.Is(err, errNothing):
		return st, true, nil
	case err != nil || st.Status.Terminal():
		return st, false, err
	}
	ended, err := e.finishCancel(ctx, subject.Run{Tenant: tenant, RunID: runID})
	if ended != nil {
		st = ended
	}
	return st, false, err
}

// finishCancel ends a run that is being cancelled, after its children. No child is left running by
// a parent whose end is in the log.
func (e *Executor) finishCancel(ctx context.Context, r subject.Run) (*runstate.State, error) {
	done := map[string]bool{}
	st, err := e.changeRun(ctx, r.Tenant, r.RunID, func(m *machine.Machine, _ time.Time) error {
		st := m.State()
		if st.Status != wire.StatusCancelling {
			return errNothing
		}
		for _, id := range e.possiblyLiveChildren(st) {
			if done[id] {
				continue
			}
			if err := e.cancelForParent(ctx, st, id); err != nil {
				return err
			}
			done[id] = true
		}
		m.Cancel(e.deps.Clock(), *st.Cancelling)
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return st, err
	}
	// A child may have been created in the meantime.
	return st, e.notifyRelatives(ctx, st)
}
