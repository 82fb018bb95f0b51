package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Limits of a frame of copied history, in payload bytes and in events.
const (
	maxCopiedBytes  = 1 << 20
	maxCopiedEvents = 2000
)

// copyHistory appends the source's events up to the fork point, with ids of the fork. After a crash
// the next dispatcher continues at the end of the log. The events were redacted when the source
// recorded them.
func (e *Executor) copyHistory(
	ctx context.Context, st *runstate.State, head frame.Head,
) (*runstate.State, frame.Head, error) {
	rec := st.Record
	if head.Next >= rec.Copied() {
		return st, head, nil
	}
	source, err := e.readHistory(ctx, rec)
	if err != nil {
		return nil, frame.Head{}, err
	}
	at, err := time.Parse(wire.TimeLayout, rec.CreatedAt)
	if err != nil {
		return nil, frame.Head{}, fmt.Errorf("%w: %w", frame.ErrDamaged, err)
	}
	r, writer := subjectOf(rec), e.newWriter()
	for head.Next < len(source) {
		events := nextPortion(rec, source[head.Next:], at)
		f := frame.New(r, subject.Step, head, events).By(writer).In(e.traceContext(rec).Run())
		if f.Pos, err = e.deps.Log.Append(ctx, f, head.Pos); err != nil {
			return nil, frame.Head{}, fmt.Errorf("copy history of run %s: %w", rec.Fork.SourceRunID, err)
		}
		for _, event := range events {
			st.Apply(event)
		}
		head = headAfter(head, f)
	}
	return st, head, nil
}

// readHistory returns the source's events that a fork starts with. A source that lost its end
// passes the chain check, so the count is compared.
func (e *Executor) readHistory(ctx context.Context, rec *wire.RunRecord) ([]wire.Event, error) {
	source, err := e.readSource(ctx, rec)
	if err != nil {
		return nil, err
	}
	if len(source) < rec.Copied() {
		return nil, fmt.Errorf("%w: run %s has %d events of the %d that its fork %s begins with",
			frame.ErrDamaged, rec.Fork.SourceRunID, len(source), rec.Copied(), rec.RunID)
	}
	return source[:rec.Copied()], nil
}

// nextPortion returns the events of the source's history that fit into one frame, as events of the
// fork. They get the fork's time, so that old timers are not overdue in it.
func nextPortion(rec *wire.RunRecord, source []wire.Event, at time.Time) []wire.Event {
	var (
		out  []wire.Event
		size int
	)
	for _, e := range source {
		if size += len(e.Payload); len(out) > 0 && (size > maxCopiedBytes || len(out) >= maxCopiedEvents) {
			break
		}
		out = append(out, machine.CopyEvent(rec, e, at))
	}
	return out
}

func subjectOf(rec *wire.RunRecord) subject.Run {
	return subject.Run{Tenant: rec.Owner.Tenant, WorkflowID: rec.WorkflowID, RunID: rec.RunID}
}

// errSourceGone means that the source of a fork was erased before the fork had what it needs of it. The
// fork is quarantined: it cannot continue.
var errSourceGone = errors.New("the run was erased")

// readSource returns the events that the source had when it was forked.
func (e *Executor) readSource(ctx context.Context, rec *wire.RunRecord) ([]wire.Event, error) {
	events, err := e.readEvents(ctx, subject.Run{
		Tenant:     rec.Owner.Tenant,
		WorkflowID: rec.WorkflowID,
		RunID:      rec.Fork.SourceRunID,
	})
	if errors.Is(err, runlog.ErrNotFound) { // it is the source that was erased, not the fork
		return nil, fmt.Errorf("%w: run %s, the source of fork %s", errSourceGone, rec.Fork.SourceRunID, rec.RunID)
	}
	if err != nil {
		return nil, fmt.Errorf("read the source of fork %s: %w", rec.RunID, err)
	}
	events = events[:min(rec.Fork.Head, len(events))]
	version := 0
	for _, event := range events {
		version = max(version, event.Engine())
	}
	return events, runstate.Refuse(rec.RunID, version)
}

func (e *Executor) readEvents(ctx context.Context, r subject.Run) ([]wire.Event, error) {
	frames, err := e.deps.Log.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := frame.VerifyChain(frames); err != nil {
		return nil, err
	}
	var out []wire.Event
	for _, f := range frames {
		events, err := f.Events()
		if err != nil {
			return nil, err
		}
		out = append(out, events...)
	}
	return out, nil
}

// repairBranch completes steps that the copied history of a branch contains only in part, before
// any other step. ErrConflict means that the log has moved on, by this append or by another
// session's.
func (e *Executor) repairBranch(ctx context.Context, plan machine.Plan, st *runstate.State, head frame.Head) error {
	rec := st.Record
	if rec.Copied() == 0 || rec.Replays() || st.Next != rec.Copied() || st.Status.Terminal() {
		return nil
	}
	m, err := e.newMachine(ctx, plan, st)
	if err != nil {
		return err
	}
	m.Repair(e.deps.Clock())
	a, err := e.append(ctx, entry{writer: e.newWriter(), run: subjectOf(rec), head: head, append: e.deps.Log.Append}, m)
	if err == nil && a.head.Pos != head.Pos {
		return runlog.ErrConflict
	}
	return err
}

// newMachine returns the run's machine: with its source's history if it replays, or if it is a
// branch that may end within a step.
func (e *Executor) newMachine(ctx context.Context, plan machine.Plan, st *runstate.State) (*machine.Machine, error) {
	rec := st.Record
	if !e.needsSource(st) {
		return machine.New(plan, e.cfg.Limits, st), nil
	}
	source, err := e.readSource(ctx, rec)
	if err != nil {
		return nil, err
	}
	own, err := e.readEvents(ctx, subjectOf(rec))
	if err != nil {
		return nil, err
	}
	history := machine.NewHistory(*rec.Fork, source, own)
	if rec.Replays() {
		if rec.Masking != "" {
			e.deps.Logger.Warn("replay of a run with masked values", "run_id", rec.RunID, "source_run_id", rec.Fork.SourceRunID)
		}
		return machine.NewReplay(plan, e.cfg.Limits, st, history), nil
	}
	return machine.NewBranch(plan, e.cfg.Limits, st, history), nil
}

// needsSource reports whether executing a run requires its source's log.
func (e *Executor) needsSource(st *runstate.State) bool {
	rec := st.Record
	return rec.Replays() || rec.Copied() > 0 && (st.Next <= rec.Copied() || machine.IsPartial(st, node.CurrentOf(e.deps.Types)))
}

// guardReplay returns a context that forbids external calls if the run replays.
func guardReplay(ctx context.Context, rec *wire.RunRecord) context.Context {
	if rec.Replays() {
		return callguard.Forbid(ctx)
	}
	return ctx
}

// runModelTask runs a task, unless the run replays: replays call no model.
func (e *Executor) runModelTask(
	ctx context.Context, rec *wire.RunRecord, effect machine.Effect, t model.Task, j journal,
) model.Result {
	if rec.Replays() || callguard.Check(ctx) != nil {
		return model.Result{Err: machine.SourceMissing(rec.Fork.SourceRunID, effect.NodeID, effect.Attempt)}
	}
	return e.deps.Models.Run(ctx, t, j)
}

// asLost returns errLost for a conflict: another session copies the history.
func asLost(err error) error {
	if errors.Is(err, runlog.ErrConflict) {
		return errLost
	}
	return err
}
