package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// ErrNoDeadLetter means that the event was not given up, was delivered since, or that its run is
// erased.
var ErrNoDeadLetter = errors.New("no failed delivery of this event")

// ErrBusy means that the webhook, the tenant or the process has all the deliveries that it may have.
var ErrBusy = errors.New("too many deliveries at the same time")

// Redeliver sends an event that was given up once more, now. It is the same message as before, so that
// a receiver that got it can tell. A success deletes the dead letter and closes the breaker of the
// webhook, but a webhook that failed too often stays failed; a failure is recorded with the dead letter, and does not count for the breaker. Errors:
// subscription.ErrNotFound, ErrNoDeadLetter, ErrBusy, kv.ErrUnavailable, runlog.ErrUnavailable.
func (s *Service) Redeliver(ctx context.Context, tenant, webhook, runID string, sequence int) (Result, error) {
	e, err := s.store.Get(ctx, tenant, webhook)
	if err != nil {
		return Result{}, err
	}
	id := laneID{tenant, webhook, runID}
	letter, revision, err := s.dead.get(ctx, id, sequence)
	if err != nil {
		return Result{}, err
	}
	ev, err := s.worker.eventAt(ctx, e, id, sequence)
	if err != nil {
		return Result{}, err
	}
	if ev.body == nil { // a question that needs no answer any more
		return Result{}, s.dead.delete(ctx, id, sequence, revision)
	}
	var free bool
	s.worker.update(func(l *scheduler) { free = l.enter(hookOf(id)) })
	if !free {
		return Result{}, ErrBusy
	}
	defer s.worker.update(func(l *scheduler) { l.leave(hookOf(id)) })
	r, err := s.worker.send(ctx, e, ev)
	if err != nil {
		return r, err
	}
	// What happened at the receiver is recorded although the caller has gone.
	ctx = context.WithoutCancel(ctx)
	if r.Reason != "" {
		s.counts.Failed.Add(1)
		letter.Attempts++
		letter.Reason, letter.At = r.Reason, wire.FormatTime(s.clock())
		return r, s.dead.update(ctx, id, letter, revision)
	}
	s.counts.Delivered.Add(1)
	if e, err = s.store.Succeed(ctx, tenant, webhook); err == nil {
		s.view.Learn(e)
	}
	return r, s.dead.delete(ctx, id, sequence, revision)
}

// eventAt reads an event of a run and renders it. Its body is nil if there is nothing to deliver.
func (w *worker) eventAt(ctx context.Context, e *subscription.Entry, id laneID, sequence int) (*event, error) {
	f, err := w.frameOf(ctx, subject.Run{Tenant: id.Tenant, RunID: id.RunID}, sequence)
	if err != nil {
		return nil, err
	}
	rec, err := w.deps.Records.Of(ctx, f.Run)
	if err != nil {
		return nil, err
	}
	docs, err := wire.SplitArray(f.Body)
	at := sequence - f.First
	if err != nil || len(docs) != len(f.Types) || at >= len(docs) {
		return nil, fmt.Errorf("%w: its frame cannot be read", ErrNoDeadLetter)
	}
	ev := &event{to: e.Target(rec), kind: f.Types[at], runID: rec.RunID, sequence: sequence, trace: cmp.Or(f.Trace, rec.Traceparent)}
	if !e.Callback {
		ev.body = body(rec, ev.kind, sequence, docs[at])
		return ev, nil
	}
	ev.body, ev.key, err = w.deps.Questions.RenderQuestion(ctx, rec, sequence, docs[at])
	return ev, err
}

// frameOf returns the frame of a run that has an event.
func (w *worker) frameOf(ctx context.Context, run subject.Run, sequence int) (*frame.Frame, error) {
	first, err := w.deps.Log.First(ctx, run)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, fmt.Errorf("%w: there is no such run", ErrNoDeadLetter)
	}
	if err != nil {
		return nil, err
	}
	for pos := first.Pos; ; {
		frames, err := w.deps.Log.Page(ctx, first.Run, pos, framesPerRead)
		if err != nil {
			return nil, err
		}
		if len(frames) == 0 {
			return nil, fmt.Errorf("%w: its run has no such event", ErrNoDeadLetter)
		}
		for _, f := range frames {
			if len(f.Types) > 0 && f.First <= sequence && sequence <= f.Last {
				return f, nil
			}
			pos = f.Pos
		}
	}
}

// get returns a dead letter and its revision. Errors: ErrNoDeadLetter, kv.ErrUnavailable.
func (d *deadLetters) get(ctx context.Context, id laneID, sequence int) (l DeadLetter, revision uint64, err error) {
	e, err := d.kv.Get(ctx, deadKey(id, sequence))
	if errors.Is(err, kv.ErrNotFound) {
		return l, 0, ErrNoDeadLetter
	}
	if err != nil {
		return l, 0, err
	}
	if err := json.Unmarshal(e.Value, &l); err != nil {
		return l, 0, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return l, e.Revision, nil
}

// update stores a dead letter, unless it has changed or was deleted since.
func (d *deadLetters) update(ctx context.Context, id laneID, l DeadLetter, revision uint64) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write dead letter: %w", err)
	}
	if _, err := d.kv.Update(ctx, deadKey(id, l.Sequence), b, revision); !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return nil
}

// delete deletes a dead letter, unless it has changed since.
func (d *deadLetters) delete(ctx context.Context, id laneID, sequence int, revision uint64) error {
	if err := d.kv.Delete(ctx, deadKey(id, sequence), revision); !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return nil
}
