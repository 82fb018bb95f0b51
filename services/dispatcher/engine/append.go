package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// appendResult describes the end of the log after an append.
type appendResult struct {
	head frame.Head
	// written reports that there were events to append.
	written bool
	changed bool
	// truncated reports that events derived from changed ones were dropped: the machine's state is
	// ahead of the log.
	truncated bool
	events    []wire.Event
}

// appendFunc appends a frame. The frame may not be fsynced when it returns; see appendAsync.
type appendFunc func(ctx context.Context, f *frame.Frame, after uint64) (pos uint64, err error)

// entry identifies the writer of a frame and the end of the log.
type entry struct {
	writer string
	run    subject.Run
	head   frame.Head
	append appendFunc
	// force appends a frame even without pending events, to claim the run.
	force bool
}

// append writes the machine's pending events as one frame. Everything that may contain a secret is
// redacted first, see redactEvents. If the redactor is unreachable, nothing is written.
func (e *Executor) append(ctx context.Context, req entry, m *machine.Machine) (appendResult, error) {
	writer, r, head := req.writer, req.run, req.head
	events, clean := m.Pending()
	if len(events) == 0 && m.Note() == nil && !req.force {
		return appendResult{head: head}, nil
	}
	if len(events) > 0 && events[0].Sequence != head.Next { // this frame would damage the log
		return appendResult{}, fmt.Errorf("append to run %s: event %d is no %d: %w",
			r.RunID, events[0].Sequence, head.Next, runlog.ErrConflict)
	}
	trace, registered := e.traceContext(m.State().Record).Run(), m.State().Record.Registration().Run
	ctx = runspan.In(ctx, trace)
	changed, err := e.redactEvents(ctx, r, registered, events, clean)
	if err != nil {
		return appendResult{}, err
	}
	kind, cut := m.FrameKind(), false
	// Events derived from a value that the redactor changed are dropped: they could reveal the
	// value, and a replay would derive other events. The machine continues from the log.
	if given, alone := m.ExternalEvents(); changed > 0 && given < len(events) && changed <= given {
		events, kind, cut = events[:given], alone, true
	}
	if events, err = e.maskEvents(ctx, req, m, events); err != nil {
		return appendResult{}, err
	}
	f := frame.New(r, kind, head, events).By(writer).In(trace)
	if n := m.Note(); n != nil {
		note, err := e.redactNote(ctx, r, registered, n)
		if err != nil {
			return appendResult{}, err
		}
		f = f.With(note)
	}
	if f.Pos, err = req.append(ctx, f, head.Pos); err != nil {
		return appendResult{}, fmt.Errorf("append to run %s: %w", r.RunID, err)
	}
	e.recordAppend(ctx, m.State(), kind, events)
	m.Flushed()
	if !cut {
		e.eraseEnded(ctx, r, m.State())
	}
	return appendResult{
		head:      headAfter(head, f),
		written:   true,
		changed:   changed > 0,
		truncated: cut,
		events:    events,
	}, nil
}

// Wake enqueues a waiting run again. A conflict means that the run was woken already, unless the
// new frames only record a vote or a question. Such frames leave the run waiting and its timer set.
func (e *Executor) Wake(ctx context.Context, r subject.Run, head frame.Head) error {
	writer := e.newWriter() // a writer name of its own, so that one of two concurrent wakes conflicts
	for range maxChangeTries {
		_, err := e.deps.Log.Append(ctx, frame.New(r, subject.Wake, head, nil).By(writer), head.Pos)
		if err == nil {
			e.deps.Metrics.Enqueued()
			return nil
		}
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
		last, err := e.deps.Log.Last(ctx, r)
		switch {
		case errors.Is(err, runlog.ErrNotFound):
			return nil
		case err != nil:
			return err
		case last.Pos == head.Pos || !leavesAsleep(last):
			return nil
		}
		head = last.Head()
	}
	return runlog.ErrConflict // the caller retries
}

// leavesAsleep reports whether a frame of another writer leaves a waiting run waiting.
func leavesAsleep(f *frame.Frame) bool {
	return f.Kind == subject.Step && f.Note != "" && len(wire.ParseNote(f.Note).Held) == 0 &&
		strings.HasPrefix(f.Writer, frame.ExternalPrefix)
}

// queuedPatience is how long a wake frame may be the last frame of a run that waits in the queue.
const queuedPatience = 10 * time.Minute

// indexLag is how long the read model may list a timer that its run has passed.
const indexLag = 2 * time.Second

// wokenLately is how long a frame of a run that is no longer asleep shows that a dispatcher wakes runs
// with the same due time now.
const wokenLately = 5 * time.Second

// WakeLost wakes a run whose timer is overdue and that no process watches. woken is false for a run
// that needs no wake: it ended, is in the queue, is executed, has continued since its timer was due,
// is quarantined, needs a later engine, or has a damaged log. elsewhere reports that it was woken a
// moment ago.
func (e *Executor) WakeLost(ctx context.Context, r subject.Run, due time.Time) (woken, elsewhere bool, err error) {
	last, err := e.deps.Log.Last(ctx, r)
	if errors.Is(err, frame.ErrDamaged) {
		return false, false, e.quarantineDamaged(ctx, r, err)
	}
	if err != nil {
		return false, false, err
	}
	check, awake, err := e.isAwake(ctx, last, due)
	if err != nil || awake {
		return false, err == nil && e.deps.Clock().Sub(last.Stored) < wokenLately, err
	}
	if held, err := e.isQuarantined(ctx, last); err != nil || held {
		return false, false, err
	}
	if may, err := e.mayWake(ctx, last.Run, check(ctx, last)); err != nil || !may {
		return false, false, err
	}
	return true, false, e.Wake(ctx, last.Run, last.Head())
}

// isAwake reports whether a run ended, is in the queue, is executed, or has continued since its timer
// was due. check is the check of a run that is not.
func (e *Executor) isAwake(
	ctx context.Context, last *frame.Frame, due time.Time,
) (check func(context.Context, *frame.Frame) error, awake bool, err error) {
	if executed, err := e.isExecuted(ctx, last); err != nil || executed {
		return nil, executed, err
	}
	age := e.deps.Clock().Sub(last.Stored)
	switch last.Kind {
	case subject.End, subject.Start: // ended, or in the queue
		return nil, true, nil
	case subject.Wake:
		// The process that received this wake frame may have registered the run's timer and died. A
		// second wake frame for a run in the queue is harmless.
		patience := e.cfg.AckWait
		if e.deps.Queued(last.Run, last.Pos) { // it waits behind others, or for a limit
			patience = queuedPatience
		}
		return e.checkAllFrames, age < patience, nil // the previous wake had no effect
	default:
		return e.checkEnds, !leavesAsleep(last) && last.Stored.After(due) && age < indexLag, nil
	}
}

// isExecuted reports whether the last frame of a run is a claim of a live process. The session has
// the run's timers.
func (e *Executor) isExecuted(ctx context.Context, last *frame.Frame) (bool, error) {
	switch owner := (frame.Ownership{}).After(last).Owner; owner {
	case "":
		return false, nil
	case e.deps.Leases.Process():
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.active[last.Run.RunID] != nil, nil
	default:
		return e.deps.Leases.Alive(ctx, owner)
	}
}
