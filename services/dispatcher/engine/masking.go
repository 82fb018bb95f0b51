package engine

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// CleartextStore stores the clear bodies of frames whose bodies in the log are masked.
type CleartextStore interface {
	// Put encrypts and stores the body of the frame with a first sequence and a writer.
	Put(ctx context.Context, r subject.Run, first int, writer string, clear []byte) error
	// Get returns it.
	Get(ctx context.Context, r subject.Run, first int, writer string) ([]byte, error)
	// Erase removes all entries of a run.
	Erase(ctx context.Context, r subject.Run) error
}

// errNoCleartextStore: the run is masked, and this host has no store of clear values.
var errNoCleartextStore = errors.New("the run's log is masked, and this host stores no clear values")

// maskEvents stores the clear events of a run with sensitive values and returns the masked ones for
// the log. The machine keeps the clear ones, and another dispatcher reads them from the store.
func (e *Executor) maskEvents(
	ctx context.Context, at entry, m *machine.Machine, events []wire.Event,
) ([]wire.Event, error) {
	if m.State().Record.Masking == "" || len(events) == 0 {
		return events, nil
	}
	if m.State().Record.Replays() { // a replay has no clear values of its source
		return maskAll(m.MaskPolicy(), events), nil
	}
	if e.deps.Cleartext == nil {
		return nil, errNoCleartextStore
	}
	if err := e.deps.Cleartext.Put(ctx, at.run, at.head.Next, at.writer, wire.AppendEvents(nil, events)); err != nil {
		return nil, err
	}
	return maskAll(m.MaskPolicy(), events), nil
}

func maskAll(p *node.MaskPolicy, events []wire.Event) []wire.Event {
	out := make([]wire.Event, len(events))
	for i, e := range events {
		out[i] = p.Event(e)
	}
	return out
}

// foldCleartext folds a masked run with its clear values. A run that ended needs none, and they are
// erased.
func (e *Executor) foldCleartext(
	ctx context.Context, st *runstate.State, frames []*frame.Frame,
) (*runstate.State, error) {
	if st.Record.Masking == "" || st.Status.Terminal() || st.Record.Replays() {
		return st, nil
	}
	if e.deps.Cleartext == nil {
		return nil, errNoCleartextStore
	}
	body, err := e.deps.Cleartext.Get(ctx, frames[0].Run, frames[0].First, frames[0].Writer)
	if err != nil {
		return nil, err
	}
	rec, err := wire.ParseRunRecord(body)
	if err != nil {
		return nil, err
	}
	clear := runstate.New(rec)
	for _, f := range frames[1:] {
		events, err := e.clearEvents(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, event := range events {
			clear.Apply(event)
		}
		clear.Remember(wire.ParseNote(f.Note))
	}
	if clear.Next != st.Next {
		return nil, fmt.Errorf("run %s: its log has %d events, and %d are sealed", rec.RunID, st.Next, clear.Next)
	}
	return clear, nil
}

// clearEvents returns the clear events of a frame.
func (e *Executor) clearEvents(ctx context.Context, f *frame.Frame) ([]wire.Event, error) {
	if f.Last < f.First { // no events
		return nil, nil
	}
	body, err := e.deps.Cleartext.Get(ctx, f.Run, f.First, f.Writer)
	if err != nil {
		return nil, err
	}
	events, err := wire.ParseEvents(body)
	if err != nil {
		return nil, fmt.Errorf("sealed events of run %s: %w", f.Run.RunID, err)
	}
	return events, nil
}

// endWithoutCleartext ends a run whose clear values are lost, unless another live dispatcher, which may
// have the right key, owns it. With masked values it would compute something else. pos is the
// position of the delivered frame.
func (e *Executor) endWithoutCleartext(ctx context.Context, r subject.Run, pos uint64) error {
	frames, err := e.deps.Log.Run(ctx, r)
	if err != nil {
		return err
	}
	st, head, err := machine.Load(frames)
	if err != nil {
		return err
	}
	if err := e.checkOwnership(ctx, r, pos, head.Ownership); err != nil {
		return err
	}
	plan, err := e.loadPlan(ctx, st)
	if err != nil {
		return err
	}
	m := machine.New(plan, e.cfg.Limits, st)
	m.EndFailed(e.deps.Clock(), "the sensitive values that the run needs are not kept any more, or the host's key has changed; start a new run")
	if _, err = e.append(ctx, entry{writer: e.newWriter(), run: r, head: head, append: e.deps.Log.Append}, m); err != nil {
		return err
	}
	return e.notifyRelatives(ctx, m.State())
}

// eraseEnded removes the clear values and the snapshot of a run that ended.
func (e *Executor) eraseEnded(ctx context.Context, r subject.Run, st *runstate.State) {
	if !st.Status.Terminal() {
		return
	}
	e.deps.Snapshots.RemoveEnded(st)
	if st.Record.Masking == "" || e.deps.Cleartext == nil {
		return
	}
	if err := e.deps.Cleartext.Erase(context.WithoutCancel(ctx), r); err != nil {
		e.deps.Logger.Warn("clear values of an ended run not erased", "run_id", r.RunID, "error", err)
	}
}
