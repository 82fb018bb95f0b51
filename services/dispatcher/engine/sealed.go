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

// Vault keeps the clear bodies of frames whose bodies in the log are masked.
type Vault interface {
	// Put seals the body of the frame that begins with an event and has a writer.
	Put(ctx context.Context, r subject.Run, first int, writer string, clear []byte) error
	// Get opens it.
	Get(ctx context.Context, r subject.Run, first int, writer string) ([]byte, error)
	// Erase forgets what is kept of a run.
	Erase(ctx context.Context, r subject.Run) error
}

// errNoVault says that a masked run came to a host that keeps no clear values.
var errNoVault = errors.New("the run's log is masked, and this host has no vault to open it with")

// conceal seals the events of a run that has sensitive values and gives the masked
// ones, which are what the log gets. Whoever takes the run over goes on with the clear
// ones; the machine has them already.
func (x *Executor) conceal(ctx context.Context, r subject.Run, writer string, head frame.Head, m *machine.Machine, events []wire.Event) ([]wire.Event, error) {
	if m.State().Record.Masking == "" || len(events) == 0 {
		return events, nil
	}
	if m.State().Record.Replays() { // it has no clear values of its source's
		return masked(m.Sensitive(), events), nil
	}
	if x.deps.Vault == nil {
		return nil, errNoVault
	}
	if err := x.deps.Vault.Put(ctx, r, head.Next, writer, wire.AppendEvents(nil, events)); err != nil {
		return nil, err
	}
	return masked(m.Sensitive(), events), nil
}

func masked(p *node.MaskPolicy, events []wire.Event) []wire.Event {
	out := make([]wire.Event, len(events))
	for i, e := range events {
		out[i] = p.Event(e)
	}
	return out
}

// reveal folds a masked run with its clear values. One that has ended is not gone on
// with, and nothing is kept of it.
func (x *Executor) reveal(ctx context.Context, st *runstate.State, frames []*frame.Frame) (*runstate.State, error) {
	if st.Record.Masking == "" || st.Status.Terminal() || st.Record.Replays() {
		return st, nil
	}
	if x.deps.Vault == nil {
		return nil, errNoVault
	}
	body, err := x.deps.Vault.Get(ctx, frames[0].Run, frames[0].First, frames[0].Writer)
	if err != nil {
		return nil, err
	}
	rec, err := wire.ParseRunRecord(body)
	if err != nil {
		return nil, err
	}
	clear := runstate.New(rec)
	for _, f := range frames[1:] {
		events, err := x.opened(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			clear.Apply(e)
		}
		clear.Remember(wire.ParseNote(f.Note))
	}
	if clear.Next != st.Next {
		return nil, fmt.Errorf("run %s: its log has %d events, and %d are sealed", rec.RunID, st.Next, clear.Next)
	}
	return clear, nil
}

// opened are the clear events of a frame.
func (x *Executor) opened(ctx context.Context, f *frame.Frame) ([]wire.Event, error) {
	if f.Last < f.First { // it has none
		return nil, nil
	}
	body, err := x.deps.Vault.Get(ctx, f.Run, f.First, f.Writer)
	if err != nil {
		return nil, err
	}
	events, err := wire.ParseEvents(body)
	if err != nil {
		return nil, fmt.Errorf("sealed events of run %s: %w", f.Run.RunID, err)
	}
	return events, nil
}

// abandon ends a run whose clear values are gone: nobody can go on with it, and with
// the masked ones it would do something else.
func (x *Executor) abandon(ctx context.Context, r subject.Run) error {
	frames, err := x.deps.Log.Run(ctx, r)
	if err != nil {
		return err
	}
	st, head, err := machine.Load(frames)
	if err != nil {
		return err
	}
	plan, err := x.plan(ctx, st)
	if err != nil {
		return err
	}
	m := machine.New(plan, x.cfg.Limits, st)
	m.Abandon(x.deps.Clock(), "the sensitive values that the run needs are not kept any more, or the host's key has changed; start it anew")
	if _, err = x.append(ctx, entry{writer: x.newWriter(), run: r, head: head, to: x.deps.Log.Append}, m); err != nil {
		return err
	}
	return x.related(ctx, m.State())
}

// erase removes the clear values and the snapshot of a run that has ended.
func (x *Executor) erase(ctx context.Context, r subject.Run, st *runstate.State) {
	if !st.Status.Terminal() {
		return
	}
	x.deps.Snapshots.Ended(st)
	if st.Record.Masking == "" || x.deps.Vault == nil {
		return
	}
	if err := x.deps.Vault.Erase(context.WithoutCancel(ctx), r); err != nil {
		x.deps.Logger.Warn("clear values of an ended run not erased", "run_id", r.RunID, "error", err)
	}
}
