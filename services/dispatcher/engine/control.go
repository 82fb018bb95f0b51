package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// change applies a request from outside to a run. It is called again with the new state if the log
// has moved on.
type change func(m *machine.Machine, now time.Time) error

// maxChangeTries limits the retries of a change that races with the run's own appends.
const maxChangeTries = 32

// errNothing: there is nothing to change.
var errNothing = errors.New("nothing to change")

// changeRun applies a change and appends its events, wherever the run is executed. A panic appends
// nothing: lifecycle.ErrPanic.
func (e *Executor) changeRun(ctx context.Context, tenant, runID string, do change) (*runstate.State, error) {
	for range maxChangeTries {
		st, head, err := e.load(ctx, subject.Run{Tenant: tenant, RunID: runID})
		if errors.Is(err, runlog.ErrNotFound) {
			return nil, fault.NoRun()
		}
		if err != nil {
			return nil, err
		}
		err = e.contain(runID, func() (err error) {
			st, err = e.applyChange(ctx, st, head, do)
			return err
		})
		if errors.Is(err, runlog.ErrConflict) {
			continue // the run moved on: retry
		}
		return st, err
	}
	return nil, fault.New(fault.Conflict, "other writers change the run too often; try again")
}

func (e *Executor) applyChange(
	ctx context.Context, st *runstate.State, head frame.Head, do change,
) (*runstate.State, error) {
	rec := st.Record
	if st.Status.Terminal() {
		e.closeSecrets(ctx, rec) // an earlier try may have registered them after the run's end unregistered them
	} else if rec.Opened {
		return nil, fault.New(fault.Conflict, "the run is executed outside this host; its external executor must close it")
	}
	plan, err := e.loadPlan(ctx, st)
	if err != nil {
		return nil, err
	}
	if st, head, err = e.copyHistory(ctx, st, head); err != nil {
		return nil, err
	}
	if err := e.repairBranch(ctx, plan, st, head); err != nil {
		return nil, err
	}
	m := machine.NewChange(plan, e.cfg.Limits, st)
	if err := do(m, e.deps.Clock()); err != nil {
		return st, err
	}
	done, err := e.openSecrets(ctx, rec)
	if err != nil {
		return nil, err
	}
	r := subject.Run{Tenant: rec.Owner.Tenant, WorkflowID: rec.WorkflowID, RunID: rec.RunID}
	spans, err := e.spans(ctx, r, rec, head, plan.Def)
	if err != nil {
		return nil, err
	}
	enqueues := m.FrameKind() == subject.Wake
	a, err := e.append(ctx, entry{
		writer: frame.ExternalPrefix + e.newWriter(),
		run:    r,
		head:   head,
		append: e.deps.Log.Append,
	}, m)
	if err != nil {
		return nil, err
	}
	spans.apply(a.events)
	if st = m.State(); a.truncated {
		if st, _, err = e.load(ctx, r); err != nil {
			return nil, err
		}
	}
	if enqueues {
		e.deps.Forget(r.Tenant, r.RunID)
	}
	e.notifyLocal(st)
	e.announce(r, head.Ownership)
	done(st.Status)
	return st, nil
}

// notifyLocal notifies the sessions and watchers of this process after a change.
func (e *Executor) notifyLocal(st *runstate.State) {
	switch rec := st.Record; {
	case st.Status.Terminal():
		e.Abort(rec.RunID)
		e.deps.Forget(rec.Owner.Tenant, rec.RunID)
	case st.Status == wire.StatusPaused:
		e.Abort(rec.RunID)
		e.deps.Forget(rec.Owner.Tenant, rec.RunID)
	default:
		e.notifySession(rec.RunID)
	}
}

// Pause stops a run, immediately or once no node is running. at is the time of the pause, or of the
// request.
func (e *Executor) Pause(
	ctx context.Context, tenant, runID string, policy wire.DrainPolicy, reason, by string,
) (at string, err error) {
	st, err := e.changeRun(ctx, tenant, runID, func(m *machine.Machine, now time.Time) error {
		st := m.State()
		if st.Status != wire.StatusPending && st.Status != wire.StatusRunning || st.Pausing != nil {
			return statusConflict(st, "be paused")
		}
		m.Begin(now)
		m.Pause(now, policy, reason, by)
		return nil
	})
	if err != nil {
		return "", err
	}
	if p := st.Pausing; p != nil {
		return p.At, nil
	}
	return st.PausedAt, nil
}

// Resume continues a paused run, or withdraws a pause that waits for running nodes.
func (e *Executor) Resume(ctx context.Context, tenant, runID, reason string) (at string, err error) {
	_, err = e.changeRun(ctx, tenant, runID, func(m *machine.Machine, now time.Time) error {
		switch st := m.State(); {
		case st.Status == wire.StatusPaused, pauseDraining(st):
		default:
			return statusConflict(st, "be resumed")
		}
		m.Resume(now, reason)
		at = wire.FormatTime(now)
		return nil
	})
	return at, err
}

// SetVariables sets variables of a live run.
func (e *Executor) SetVariables(ctx context.Context, tenant, runID string, values map[string]json.RawMessage) error {
	_, err := e.changeRun(ctx, tenant, runID, func(m *machine.Machine, now time.Time) error {
		if st := m.State(); st.Status.Terminal() || st.Status == wire.StatusCancelling {
			return statusConflict(st, "have its variables set")
		}
		m.Begin(now)
		if bad := m.SetVariables(now, values); bad != nil {
			return fault.New(fault.InvalidArgument, "%s", bad.Message)
		}
		return nil
	})
	return err
}

// pauseDraining reports that a pause was acknowledged and waits for running nodes.
func pauseDraining(st *runstate.State) bool { return st.Pausing != nil && !st.Status.Terminal() }

// statusConflict is the error of a request that the run's status does not allow (OpenWOP host
// contract §2.7).
func statusConflict(st *runstate.State, what string) *fault.Error {
	code, status := fault.Conflict, st.Status
	if status.Terminal() {
		code = fault.RunTerminal
	}
	if pauseDraining(st) {
		status = wire.StatusPaused
	}
	e := fault.New(code, "a run that is %s cannot %s", status, what).With("runStatus", string(status))
	switch {
	case pauseDraining(st):
		e = e.With("pausedAt", st.Pausing.At)
	case status == wire.StatusPaused:
		e = e.With("pausedAt", st.PausedAt)
	}
	return e
}

// Resolved is the result of an answer.
type Resolved struct {
	NodeID   string
	Status   wire.Status
	Kind     interrupt.Kind
	Decision interrupt.Decision
}

// Answer answers the interrupt of a node.
type Answer struct {
	NodeID string
	// InterruptID names the interrupt; empty means the node's open or last one.
	InterruptID string
	// ByToken reports that the caller has no credential of their own.
	ByToken bool
	interrupt.Answer
}

// Resolve applies an answer to a node's interrupt. Errors: fault.RunNotFound, InterruptNotFound,
// InterruptResolved, InterruptGone, AuthElevationRequired, and those of interrupt.Decide.
func (e *Executor) Resolve(ctx context.Context, tenant, runID string, a Answer) (Resolved, error) {
	advanced := false
	out, err := e.resolve(ctx, tenant, runID, a, func(m *machine.Machine, now time.Time) {
		advanced = true
		m.Advance(now) // the next session performs the effects
	})
	// If the derived events exceed the limit, or a node panics, only the answer is recorded. The next
	// session meets the same problem and ends the run.
	if advanced && (runlog.IsPermanent(err) || errors.Is(err, lifecycle.ErrPanic)) {
		out, err = e.resolve(ctx, tenant, runID, a, func(*machine.Machine, time.Time) {})
	}
	if errors.Is(err, lifecycle.ErrPanic) { // the answer itself cannot be applied: the question would stay open
		return out, errors.Join(err, e.endPanicked(ctx, subject.Run{Tenant: tenant, RunID: runID}, 0))
	}
	return out, err
}

// resolve appends an answer, and the events that advance derives from it.
func (e *Executor) resolve(
	ctx context.Context, tenant, runID string, a Answer, advance func(*machine.Machine, time.Time),
) (Resolved, error) {
	var out Resolved
	st, err := e.changeRun(ctx, tenant, runID, func(m *machine.Machine, now time.Time) error {
		q, err := findInterrupt(m.State(), a.NodeID, a.InterruptID)
		if err != nil {
			return err
		}
		if out.NodeID, out.Kind = q.NodeID, q.Kind; a.ByToken && q.NeedsCredential() {
			return fault.New(fault.AuthElevationRequired,
				"this approval takes a credential of your own with the scope approvals:respond, not a token")
		}
		switch st := m.State(); {
		case q.Resolved && q.ResumeValue != nil && interrupt.Redelivered(q.ResumeValue, a.Value):
			return errNothing // a repeated event from outside
		case q.Resolved && q.ResumeValue == nil: // no answer: its time ran out
			return fault.New(fault.InterruptExpired, "the time for an answer is over")
		case q.Resolved:
			return fault.New(fault.InterruptResolved, "the question has been answered already")
		case st.Status.Terminal() || st.Status == wire.StatusCancelling:
			return fault.New(fault.InterruptGone,
				"the run has ended, or is being cancelled: its question is not asked any more").With("runStatus", string(st.Status))
		case !st.Asks(q):
			return fault.New(fault.InterruptGone, "the node has ended without the answer").With("nodeId", q.NodeID)
		}
		a.At, a.OnDecline = now, m.DeclinePolicy(q)
		if out.Decision, err = interrupt.Decide(q.Pending, a.Answer); err != nil {
			return err
		}
		m.Resolve(now, q.NodeID, out.Decision)
		// A child must end under a delivery, see notifyRelatives. A replay follows its source.
		if rec := m.State().Record; out.Decision.Outcome.Resolves() && rec.Parent == nil && !rec.Replays() {
			advance(m, now)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return Resolved{}, err
	}
	out.Status = st.Status
	return out, nil
}

// Interrupt returns the open or last interrupt of a node. ended reports that the run ended, or the
// node did without an answer.
func (e *Executor) Interrupt(
	ctx context.Context, tenant, runID, nodeID, id string,
) (q *runstate.Interrupt, ended bool, err error) {
	st, err := e.view(ctx, subject.Run{Tenant: tenant, RunID: runID})
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, false, fault.NoRun()
	}
	if err != nil {
		return nil, false, err
	}
	if q, err = findInterrupt(st, nodeID, id); err != nil {
		return nil, false, err
	}
	return q, st.Status.Terminal() || !q.Resolved && !st.Asks(q), nil
}

// findInterrupt finds an interrupt by its node, and by its id if the caller gave one.
func findInterrupt(st *runstate.State, nodeID, id string) (*runstate.Interrupt, error) {
	q := st.Find(id)
	if id == "" {
		if q = st.Open(nodeID); q == nil {
			q = st.Latest(nodeID)
		}
	}
	if q != nil && q.NodeID == nodeID {
		return q, nil
	}
	return nil, fault.New(fault.InterruptNotFound, "the node waits for no answer, and has not")
}

// maySessionAdopt reports whether a session may continue after a frame of another writer: a wake,
// or a change that neither ends nor pauses the run.
func maySessionAdopt(f *frame.Frame) bool {
	if f.Kind == subject.End {
		return false
	}
	for _, t := range f.Types {
		if t == wire.EventRunPaused {
			return false
		}
	}
	return f.Kind == subject.Wake && f.Last < f.First || strings.HasPrefix(f.Writer, frame.ExternalPrefix)
}
