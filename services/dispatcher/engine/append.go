package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// appendResult is where the log ends after an append, and whether the redactor
// changed what was appended.
type appendResult struct {
	head frame.Head
	// written reports that there was something to append.
	written bool
	changed bool
	// truncated reports that what followed from the changed events is not there: the machine's
	// state is ahead of the log.
	truncated bool
	events    []wire.Event
}

// appendFunc is how a frame comes into the log: on the disk when it returns, or a moment later.
type appendFunc func(ctx context.Context, f *frame.Frame, after uint64) (pos uint64, err error)

// entry says whose frame is appended, and where.
type entry struct {
	writer string
	run    subject.Run
	head   frame.Head
	append appendFunc
	// force appends a frame even when nothing is pending: it claims the run.
	force bool
}

// append writes the machine's pending events as one frame. Everything that may
// carry a secret passes the redactor first; if that cannot be reached, nothing
// is written.
func (e *Executor) append(ctx context.Context, req entry, m *machine.Machine) (appendResult, error) {
	writer, r, head := req.writer, req.run, req.head
	events, clean := m.Pending()
	if len(events) == 0 && m.Note() == nil && !req.force {
		return appendResult{head: head}, nil
	}
	if len(events) > 0 && events[0].Sequence != head.Next { // it would damage the log
		return appendResult{}, fmt.Errorf("append to run %s: event %d is no %d: %w", r.RunID, events[0].Sequence, head.Next, runlog.ErrConflict)
	}
	trace, registered := e.traceContext(m.State().Record).Run(), m.State().Record.Registration().Run
	ctx = runspan.In(ctx, trace)
	changed, err := e.redactEvents(ctx, r, registered, events, clean)
	if err != nil {
		return appendResult{}, err
	}
	kind, cut := m.FrameKind(), false
	// What nodes made of a value that is another in the log must not be there: it would tell
	// of the value, and no replay came to it. The machine goes on from the log.
	if given, alone := m.ExternalEvents(); changed > 0 && given < len(events) && changed <= given {
		events, kind, cut = events[:given], alone, true
	}
	if events, err = e.maskEvents(ctx, r, writer, head, m, events); err != nil {
		return appendResult{}, err
	}
	f := frame.New(r, kind, head, events).By(writer).In(trace)
	if n := m.Note(); n != nil && n.IDsOnly() {
		f = f.With(n.JSON())
	} else if n != nil {
		out, _, err := e.deps.Redactor.Redact(ctx, r.Tenant, r.RunID, registered, [][]byte{[]byte(n.JSON())})
		if err != nil {
			return appendResult{}, fmt.Errorf("redact a note of run %s: %w", r.RunID, err)
		}
		f = f.With(string(out[0]))
	}
	if f.Pos, err = req.append(ctx, f, head.Pos); err != nil {
		return appendResult{}, fmt.Errorf("append to run %s: %w", r.RunID, err)
	}
	e.recordAppend(ctx, m.State(), kind, events)
	m.Flushed()
	if !cut {
		e.eraseEnded(ctx, r, m.State())
	}
	next := f.Head()
	next.Ownership = head.After(f)
	return appendResult{head: next, written: true, changed: changed > 0, truncated: cut, events: events}, nil
}

// redactEvents takes the secrets out of events that are not clean. It gives the number of the
// first that changed, counted from 1; 0: none did.
func (e *Executor) redactEvents(ctx context.Context, r subject.Run, registered bool, events []wire.Event, clean []bool) (first int, err error) {
	var (
		docs  [][]byte
		index []int
	)
	for i, event := range events {
		if clean[i] || !strictjson.HasText(event.Payload, wire.MinSecretBytes) {
			continue
		}
		docs, index = append(docs, event.Payload), append(index, i)
	}
	if len(docs) == 0 {
		return 0, nil
	}
	for part := range slices.Chunk(index, maxRedacted) {
		out, changed, err := e.deps.Redactor.Redact(ctx, r.Tenant, r.RunID, registered, docs[:len(part)])
		if err != nil {
			return 0, fmt.Errorf("redact events of run %s: %w", r.RunID, err)
		}
		if docs = docs[len(part):]; !changed {
			continue
		}
		for k, i := range part {
			if first == 0 && !bytes.Equal(events[i].Payload, out[k]) {
				first = i + 1
			}
			events[i].Payload = out[k]
		}
	}
	return first, nil
}

// maxRedacted is how many documents the redactor is given at a time; it takes a thousand.
const maxRedacted = 512

// Wake hands a sleeping run to the dispatchers again. A conflict means that it
// is awake already, unless all that came was a vote or a question: the run slept on, and
// its timer stands.
func (e *Executor) Wake(ctx context.Context, r subject.Run, head frame.Head) error {
	writer := e.newWriter() // its own, so that of two who wake it one finds it awake
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
	return runlog.ErrConflict // it is tried again
}

// leavesAsleep reports whether a frame wakes nobody though somebody else has written it: a run
// that slept before it does so after it.
func leavesAsleep(f *frame.Frame) bool {
	return f.Kind == subject.Step && f.Note != "" && len(wire.ParseNote(f.Note).Held) == 0 && strings.HasPrefix(f.Writer, frame.ExternalPrefix)
}

// backlogPatience is how long a wake frame may be the last of its run while runs wait in the queue.
const backlogPatience = 10 * time.Minute

// WakeLost wakes a run whose timer is overdue and that no process watches. woken is false for a
// run that needs no wake: it has ended, is in the queue, is of a later engine, or has a damaged
// log.
func (e *Executor) WakeLost(ctx context.Context, r subject.Run) (woken bool, err error) {
	last, err := e.deps.Log.Last(ctx, r)
	if errors.Is(err, frame.ErrDamaged) {
		e.logNotWoken(r.RunID, err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	check := e.checkEnds
	switch last.Kind {
	case subject.End, subject.Start: // done, or in the queue
		return false, nil
	case subject.Wake:
		// One that stays the last frame was taken by a process that found the run asleep, watched
		// its timer, and died. A second wake frame beside one that is in the queue does no harm.
		patience := e.cfg.AckWait
		if e.deps.Backlog() { // it may wait behind others, or for a limit
			patience = backlogPatience
		}
		if e.deps.Clock().Sub(last.Stored) < patience {
			return false, nil // in the queue
		}
		check = e.checkAllFrames // the wake before this one had no effect
	}
	if may, err := e.mayWake(r.RunID, check(ctx, last)); err != nil || !may {
		return false, err
	}
	return true, e.Wake(ctx, last.Run, last.Head())
}
