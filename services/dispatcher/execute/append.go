package execute

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/run"
)

// appended is where the log ends after an append, and whether the redactor
// changed what was appended.
type appended struct {
	head    frame.Head
	changed bool
	events  []wire.Event
}

// append writes the machine's pending events as one frame. Everything that may
// carry a secret passes the redactor first; if that cannot be reached, nothing
// is written.
func (x *Executor) append(ctx context.Context, writer string, r subject.Run, head frame.Head, m *run.Machine) (appended, error) {
	events, clean := m.Pending()
	if len(events) == 0 {
		return appended{head: head}, nil
	}
	changed, err := x.redact(ctx, r, m.State().Record.Registration().Run, events, clean)
	if err != nil {
		return appended{}, err
	}
	f := frame.New(r, m.FrameKind(), head, events).By(writer).In(x.trace(m.State().Record).Run())
	if f.Pos, err = x.deps.Log.Append(ctx, f, head.Pos); err != nil {
		return appended{}, fmt.Errorf("append to run %s: %w", r.RunID, err)
	}
	m.Flushed()
	return appended{head: f.Head(), changed: changed, events: events}, nil
}

// minSecret is the shortest secret the redactor knows (OpenWOP envelope contract
// §11): a payload without a longer text cannot hold one.
const minSecret = 8

func (x *Executor) redact(ctx context.Context, r subject.Run, registered bool, events []wire.Event, clean []bool) (bool, error) {
	var (
		docs  [][]byte
		index []int
	)
	for i, e := range events {
		if clean[i] || !strictjson.HasText(e.Payload, minSecret) {
			continue
		}
		docs, index = append(docs, e.Payload), append(index, i)
	}
	if len(docs) == 0 {
		return false, nil
	}
	out, changed, err := x.deps.Redactor.Redact(ctx, r.Tenant, r.RunID, registered, docs)
	if err != nil {
		return false, fmt.Errorf("redact events of run %s: %w", r.RunID, err)
	}
	if !changed {
		return false, nil
	}
	for k, i := range index {
		events[i].Payload = out[k]
	}
	return true, nil
}

// onlyWoken looks whether a conflict came from wake frames alone: they carry no
// event, and the session may go on after them. ok is false when somebody else
// wrote events.
func (x *Executor) onlyWoken(ctx context.Context, r subject.Run, head frame.Head) (frame.Head, bool, error) {
	frames, err := x.deps.Log.Run(ctx, r)
	if err != nil {
		return head, false, err
	}
	next := head
	for _, f := range frames {
		switch {
		case f.Pos <= head.Pos:
		case f.Kind == subject.Wake && f.Last < f.First:
			next = f.Head()
		default:
			return head, false, nil
		}
	}
	return next, next.Pos != head.Pos, nil
}

// Wake hands a sleeping run to the dispatchers again. A conflict means that it
// is awake already.
func (x *Executor) Wake(ctx context.Context, r subject.Run, head frame.Head) error {
	f := frame.New(r, subject.Wake, head, nil)
	_, err := x.deps.Log.Append(ctx, f, head.Pos)
	if errors.Is(err, runlog.ErrConflict) {
		return nil
	}
	return err
}

// WakeLost wakes a run whose sleep nobody in any process watches over. A run
// that has just been woken, or has ended, is left alone.
func (x *Executor) WakeLost(ctx context.Context, r subject.Run) error {
	last, err := x.deps.Log.Last(ctx, r)
	if err != nil {
		return err
	}
	if last.Kind == subject.Wake || last.Kind == subject.End || last.Kind == subject.Start {
		return nil // in the queue, or done
	}
	return x.Wake(ctx, last.Run, last.Head())
}
