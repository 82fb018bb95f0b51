package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// spawnFunc returns the function that starts the child of an effect.
func (e *Executor) spawnFunc(parent *wire.RunRecord, effect machine.Effect) effectFunc {
	return func(ctx context.Context, _ writerPort) (res model.Result) {
		if e.contain(parent.RunID, func() error { res = e.spawn(ctx, parent, effect); return nil }) != nil {
			return failedResult(fault.New(fault.InternalError, "the node failed inside the host"))
		}
		return res
	}
}

// spawn starts a child run. No other code starts runs for nodes.
func (e *Executor) spawn(ctx context.Context, parent *wire.RunRecord, effect machine.Effect) model.Result {
	switch {
	case parent.Replays():
		return failedResult(fault.New(fault.CapabilityNotProvided,
			"a replay starts no runs: the log it follows has nothing recorded of this one"))
	case e.deps.Children == nil:
		return failedResult(fault.New(fault.CapabilityNotProvided, "this dispatcher cannot start runs for nodes"))
	}
	if err := callguard.Begin(ctx); err != nil {
		return model.Result{Interrupted: err, Unsent: true}
	}
	c := effect.Spawn
	err := e.deps.Children.StartChild(ctx, create.Child{
		RunID:       c.RunID,
		Parent:      parent,
		NodeID:      effect.NodeID,
		Attempt:     effect.Attempt,
		WorkflowID:  c.Config.WorkflowID,
		Inputs:      c.Inputs,
		Unset:       c.Unset,
		Trust:       c.Trust,
		Awaited:     c.Config.Wait,
		Cascade:     c.Config.Cascade,
		Traceparent: e.traceContext(parent).Node(effect.NodeID),
	})
	switch code := fault.CodeOf(err); {
	case err == nil:
		return model.Result{}
	case ctx.Err() != nil, code == fault.ServiceUnavailable, code == fault.InternalError:
		return model.Result{Interrupted: fmt.Errorf("start child run %s: %w", c.RunID, err)}
	case code == fault.WorkflowNotFound:
		return failedResult(fault.New(fault.UnknownChildWorkflow,
			"/config/workflowId: no workflow %q in this tenant; register it, or name another", c.Config.WorkflowID))
	case code == fault.PayloadTooLarge:
		return failedResult(fault.New(fault.ContentTooLong,
			"/config/inputMapping: what the child is given is larger, or nested deeper, than its log takes; map less"))
	default:
		return failedResult(err)
	}
}

// failedResult is the result of a node whose child cannot be started.
func failedResult(err error) model.Result {
	e, ok := fault.As(err)
	if !ok {
		e = fault.New(fault.InternalError, "the child run could not be started")
	}
	return model.Result{Err: &wire.NodeError{Code: string(e.Code), Message: e.Message, Details: e.Details}}
}

// readChildren applies the current state of awaited children: they may have reported while the run
// was paused.
func (s *session) readChildren(ctx context.Context) error {
	for _, c := range awaitedChildren(s.machine.State()) {
		child, err := s.exec.view(ctx, subject.Run{Tenant: s.claim.run.Tenant, RunID: c.RunID})
		if errors.Is(err, runlog.ErrNotFound) || errors.Is(err, cleartext.ErrGone) {
			continue // it reports after another process ended it
		}
		if err != nil {
			return fmt.Errorf("read child run %s: %w", c.RunID, err)
		}
		now, r, known := s.exec.deps.Clock(), machine.ReportOf(child), *c
		s.unflushed.apply(func() {
			// Another report may have been applied since: this one is older.
			if n := s.machine.State().Nodes[c.NodeID]; r.Status.Terminal() || n.Child != nil && *n.Child == known {
				s.machine.ApplyReport(now, c.NodeID, r)
			}
		})
	}
	return nil
}

// awaitedChildren are the children that nodes of a run wait for.
func awaitedChildren(st *runstate.State) []*runstate.Child {
	var out []*runstate.Child
	for _, c := range st.Children {
		if n := st.Nodes[c.NodeID]; n != nil && n.Child == c && !n.Status.Terminal() {
			out = append(out, c)
		}
	}
	return out
}

// notifyRelatives propagates a run's state to its parent and children. It runs before the delivery
// is acknowledged: after a crash the next delivery calls it again.
func (e *Executor) notifyRelatives(ctx context.Context, st *runstate.State) error {
	if st.Status == wire.StatusCancelled || st.Status == wire.StatusFailed {
		if err := e.cancelChildren(ctx, st); err != nil {
			return err
		}
	}
	return e.reportToParent(ctx, st)
}

// reportToParent reports to the parent of a child that ended, waits, or continues. The child is
// read after the parent, so that an older report cannot overwrite a newer one. A reporter that said
// "waiting" reads the child again: another one that had nothing to report may have run in between.
func (e *Executor) reportToParent(ctx context.Context, st *runstate.State) error {
	p := st.Record.Parent
	if p == nil || !p.Awaited || !st.Status.Terminal() && len(st.Interrupts) == 0 && len(st.Children) == 0 {
		return nil
	}
	st, err := e.recordedState(ctx, st)
	for err == nil {
		var report *machine.Report
		if report, err = e.sendReport(ctx, st); report == nil || report.Wait == nil {
			return err
		}
		if st, _, err = e.load(ctx, subjectOf(st.Record)); err == nil && isSameWait(machine.ReportOf(st).Wait, report.Wait) {
			return nil
		}
	}
	return err
}

func isSameWait(a, b *runstate.Wait) bool {
	return a != nil && b != nil && a.InterruptID == b.InterruptID
}

// sendReport reports once; nil means that nothing changed. A report that exceeds a limit of the
// parent's log becomes a failure: otherwise every delivery of the child would fail again.
func (e *Executor) sendReport(ctx context.Context, st *runstate.State) (report *machine.Report, err error) {
	report, err = e.sendReportOf(ctx, st, machine.ReportOf)
	if runlog.IsPermanent(err) {
		e.deps.Logger.Warn("child's outputs left out: they exceed a limit of the parent's log",
			"run_id", st.Record.RunID, "error", err)
		report, err = e.sendReportOf(ctx, st, func(st *runstate.State) machine.Report { return machine.ReportOf(st).AsTooLarge() })
	}
	return report, err
}

func (e *Executor) sendReportOf(
	ctx context.Context, st *runstate.State, reportOf func(*runstate.State) machine.Report,
) (report *machine.Report, err error) {
	p := st.Record.Parent
	_, err = e.changeRun(ctx, st.Record.Owner.Tenant, p.RunID, func(m *machine.Machine, now time.Time) error {
		if !st.Status.Terminal() {
			fresh, _, err := e.load(ctx, subjectOf(st.Record))
			if err != nil {
				return err
			}
			st = fresh
		}
		r := reportOf(st)
		if report = nil; !m.ApplyReport(now, p.NodeID, r) {
			return errNothing
		}
		m.WakeAfterReport(r)
		report = &r
		return nil
	})
	switch {
	case err == nil, errors.Is(err, errNothing), fault.CodeOf(err) == fault.RunNotFound:
		return report, nil
	default:
		return nil, fmt.Errorf("report to parent run %s: %w", p.RunID, err)
	}
}

// recordedState returns a run's state as its log has it, so that masked values stay masked.
func (e *Executor) recordedState(ctx context.Context, st *runstate.State) (*runstate.State, error) {
	if st.Record.Masking == "" || !st.Status.Terminal() {
		return st, nil
	}
	return e.view(ctx, subject.Run{Tenant: st.Record.Owner.Tenant, RunID: st.Record.RunID})
}

// possiblyLiveChildren are the children that may not have ended.
func (e *Executor) possiblyLiveChildren(st *runstate.State) []string {
	var out []string
	for _, c := range st.Children {
		if !c.Status.Terminal() || c.Cut {
			out = append(out, c.RunID)
		}
	}
	return append(out, e.unrecordedChildren(st)...)
}

// unrecordedChildren are children that may exist although the log does not record them yet.
func (e *Executor) unrecordedChildren(st *runstate.State) []string {
	var out []string
	for id, n := range st.Nodes {
		if node.CurrentOf(e.deps.Types)[n.TypeID].Class != node.Spawns {
			continue
		}
		if child, there := machine.ExpectedChild(st, id); !there && n.Child == nil {
			out = append(out, child)
		}
	}
	return out
}

// cancelChildren cancels the children that end with a run.
func (e *Executor) cancelChildren(ctx context.Context, st *runstate.State) error {
	for _, id := range e.possiblyLiveChildren(st) {
		if err := e.cancelForParent(ctx, st, id); err != nil {
			return err
		}
	}
	return nil
}

// cancelForParent cancels a child because of its parent, if the child ends with it.
func (e *Executor) cancelForParent(ctx context.Context, parent *runstate.State, id string) error {
	note := wire.CancelNote{Reason: wire.ReasonParentCancelled, By: "system", ParentRunID: parent.Record.RunID}
	_, _, err := e.cancel(ctx, parent.Record.Owner.Tenant, id, note, func(rec *wire.RunRecord) bool {
		return rec.Parent != nil && rec.Parent.RunID == parent.Record.RunID && endsWithParent(rec.Parent, parent.Status)
	})
	if err != nil && fault.CodeOf(err) != fault.RunNotFound {
		return fmt.Errorf("cancel child run %s: %w", id, err)
	}
	return nil
}

// endsWithParent reports whether a child ends with a parent of that status. A child that is not
// awaited outlives a failed parent.
func endsWithParent(p *wire.Parent, status wire.Status) bool {
	return p.Cascade && (status != wire.StatusFailed || p.Awaited)
}

// errCancelling ends a session whose run is being cancelled. errOrphaned ends that of a child whose
// parent ended without cancelling it.
var (
	errCancelling = errors.New("run is being cancelled")
	errOrphaned   = errors.New("run's parent was cancelled")
)

// checkMustEnd reports that a run must end before its next step. Errors: errCancelling,
// errOrphaned, and those of the log.
func (e *Executor) checkMustEnd(ctx context.Context, st *runstate.State) error {
	if st.Status == wire.StatusCancelling {
		return errCancelling
	}
	p := st.Record.Parent
	if p == nil || !p.Cascade {
		return nil
	}
	last, err := e.deps.Log.Last(ctx, subject.Run{Tenant: st.Record.Owner.Tenant, RunID: p.RunID})
	if errors.Is(err, runlog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read parent run %s: %w", p.RunID, err)
	}
	if status, ended := endStatus(last.Types); ended && status != wire.StatusCompleted && endsWithParent(p, status) {
		return errOrphaned
	}
	return nil
}

// endStatus returns the status of a run whose last frame has events of these types.
func endStatus(types []wire.EventType) (wire.Status, bool) {
	if len(types) == 0 {
		return "", false
	}
	switch types[len(types)-1] {
	case wire.EventRunCompleted:
		return wire.StatusCompleted, true
	case wire.EventRunFailed:
		return wire.StatusFailed, true
	case wire.EventRunCancelled:
		return wire.StatusCancelled, true
	default:
		return "", false
	}
}

// cancelOrphan ends a child whose parent ended without cancelling it.
func (e *Executor) cancelOrphan(ctx context.Context, tenant, runID string) error {
	child, _, err := e.load(ctx, subject.Run{Tenant: tenant, RunID: runID})
	if err != nil {
		return err
	}
	parent, err := e.view(ctx, subject.Run{Tenant: tenant, RunID: child.Record.Parent.RunID})
	if err != nil {
		return err
	}
	return e.cancelForParent(ctx, parent, runID)
}
