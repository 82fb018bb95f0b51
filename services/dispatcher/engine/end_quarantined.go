package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// EndQuarantined ends a run as cancelled, even if its definition is missing or its execution
// panics. Errors: fault.RunNotFound, fault.Conflict if its log is damaged,
// fault.EngineVersionMismatch.
func (e *Executor) EndQuarantined(ctx context.Context, tenant, runID, reason, by string) (wire.Status, error) {
	var st *runstate.State
	err := e.contain(runID, func() (err error) {
		st, _, err = e.Cancel(ctx, tenant, runID, reason, by)
		return err
	})
	switch {
	case err == nil:
		return st.Status, nil
	case errors.Is(err, frame.ErrDamaged):
		return "", damagedLog(err)
	case isTransient(err), needsLaterEngine(err), fault.CodeOf(err) == fault.RunNotFound, fault.CodeOf(err) == fault.Conflict:
		return "", err
	}
	r := subject.Run{Tenant: tenant, RunID: runID}
	writer := frame.ExternalPrefix + e.newWriter()
	err = e.endWithRetries(ctx, ending{run: r, writer: writer, apply: func(m *machine.Machine) {
		now := e.deps.Clock()
		m.Begin(now)
		m.Cancel(now, wire.CancelNote{Reason: reason, By: by})
	}})
	switch {
	case errors.Is(err, frame.ErrDamaged):
		return "", damagedLog(err)
	case errors.Is(err, runlog.ErrNotFound):
		return "", fault.NoRun()
	case err != nil:
		return "", err
	}
	last, err := e.deps.Log.Last(ctx, r) // the run may have ended in another way before
	if err != nil {
		return "", err
	}
	status, _ := endStatus(last.Types)
	return status, nil
}

// damagedLog is the error for a run whose log is damaged: no frame may follow a damaged one, and a
// backup may still restore the run.
func damagedLog(err error) *fault.Error {
	return fault.New(fault.Conflict,
		"the run's log is damaged: no end can be appended to it; restore the log from a backup, then retry or end the run").Wrap(err)
}
