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
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/replayguard"
)

// Bounds of a frame of copied history: in bytes of payloads, and in events.
const (
	maxCopiedBytes  = 1 << 20
	maxCopiedEvents = 2000
)

// copyHistory brings a fork's log to where the fork goes its own way: the source's events
// with ids of the fork's. Whoever does it after a crash goes on where the log ends. The
// events have passed the redactor when the source recorded them.
func (e *Executor) copyHistory(ctx context.Context, st *runstate.State, head frame.Head) (*runstate.State, frame.Head, error) {
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
		after := head.After(f)
		head = f.Head()
		head.Ownership = after
	}
	return st, head, nil
}

// readHistory is what a fork begins with of what its source has recorded. A source that lost its end
// reads whole, and has too little.
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

// nextPortion is as much of a source's history as goes into one frame, as events of the fork.
// They are recorded in its log now, so that nothing is overdue in it that was recorded
// long ago.
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

// readSource is what a fork's source had recorded when it was forked.
func (e *Executor) readSource(ctx context.Context, rec *wire.RunRecord) ([]wire.Event, error) {
	events, err := e.readEvents(ctx, subject.Run{Tenant: rec.Owner.Tenant, WorkflowID: rec.WorkflowID, RunID: rec.Fork.SourceRunID})
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

// repairBranch completes what the copied history of a branch has only begun, before anything else
// is done to it. An ErrConflict says that the log has moved on: here, or by a session that
// has done the same.
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

// newMachine is the run's: with its source's tape if it replays, or if it is a branch that may
// end amid what a node told.
func (e *Executor) newMachine(ctx context.Context, plan machine.Plan, st *runstate.State) (*machine.Machine, error) {
	m, rec := machine.New(plan, e.cfg.Limits, st), st.Record
	if !e.needsSource(st) {
		return m, nil
	}
	source, err := e.readSource(ctx, rec)
	if err != nil {
		return nil, err
	}
	own, err := e.readEvents(ctx, subjectOf(rec))
	if err != nil {
		return nil, err
	}
	tape := machine.NewHistory(*rec.Fork, source, own)
	if rec.Replays() {
		if rec.Masking != "" {
			e.deps.Logger.Warn("a replay is over values that are masked in its source", "run_id", rec.RunID, "source_run_id", rec.Fork.SourceRunID)
		}
		return m.WithReplayHistory(tape), nil
	}
	return m.WithBranchHistory(tape), nil
}

// needsSource reports whether whoever takes up a run reads what its source did.
func (e *Executor) needsSource(st *runstate.State) bool {
	rec := st.Record
	return rec.Replays() || rec.Copied() > 0 && (st.Next <= rec.Copied() || machine.IsPartial(st, e.deps.Types))
}

// guardReplay is the context of a run's work: nothing leaves it while the run replays.
func guardReplay(ctx context.Context, rec *wire.RunRecord) context.Context {
	if rec.Replays() {
		return replayguard.Forbid(ctx)
	}
	return ctx
}

// runModelTask is the models' seam: no task of a replay passes it, whoever asks for one.
func (s *session) runModelTask(ctx context.Context, rec *wire.RunRecord, e machine.Effect, t model.Task) model.Result {
	if rec.Replays() || replayguard.Check(ctx) != nil {
		return model.Result{Err: machine.SourceMissing(rec.Fork.SourceRunID, e.NodeID, e.Attempt)}
	}
	return s.exec.deps.Models.Run(ctx, t, journal{s: s, effect: e})
}

// asLost reports that an error of copying means that somebody else does it.
func asLost(err error) error {
	if errors.Is(err, runlog.ErrConflict) {
		return errLost
	}
	return err
}
