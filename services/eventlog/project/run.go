// Package project turns frames of the run log into rows of the read model. It is pure: the same
// frames yield the same rows.
//
// A run's frames form a chain. If the chain breaks, because a frame is missing or contradicts its
// headers, the run is marked as damaged and keeps the state up to the break. Other runs are not
// affected.
package project

import (
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Errors of frames that were not applied.
var (
	// ErrSeen: the frame was applied before.
	ErrSeen = errors.New("frame already applied")
	// ErrStray: the frame does not belong to its run: a second start, another workflow, or a frame
	// after the end.
	ErrStray = errors.New("frame does not belong to its run")
	// ErrBroken: the run's chain is broken; the run is now damaged.
	ErrBroken = errors.New("run's chain of frames is broken")
)

// Run is the state of a run after the applied frames.
type Run struct {
	ID    subject.Run
	State *runstate.State
	// Head is the end of the run's log.
	Head frame.Head
	// Damage describes the position and cause of the break; empty if none.
	Damage string
	// Bytes sums the folded bodies, as a measure of the state's size.
	Bytes int

	createdAt string
	owner     store.Owner
	// lastNode and model are the latest of the run's events; inputs is the preview of its inputs.
	lastNode, model, inputs string

	// Marks by which lists find the run; Found has returned the first given of them.
	marks       []store.Mark
	given       int
	substituted []store.Substitution
	// givenSubstituted are those that Found has returned, or that were loaded.
	givenSubstituted int
	counter          *counter // nil unless the run's events are counted
}

// CreatedAt returns the creation time of the run, in wire.TimeLayout.
func (r *Run) CreatedAt() string { return r.createdAt }

// Begin creates a run from its first frame. If that is not a readable start frame, the run starts
// damaged, so that readers see the damage.
func Begin(f *frame.Frame) (*Run, error) {
	r := &Run{ID: f.Run, createdAt: wire.FormatTime(f.Stored)}
	rec, err := f.Record()
	if err == nil && (rec.RunID != f.Run.RunID || rec.WorkflowID != f.Run.WorkflowID || rec.Owner.Tenant != f.Run.Tenant) {
		err = errors.New("record names another run")
	}
	if err != nil {
		r.State = runstate.New(&wire.RunRecord{
			RunID: f.Run.RunID, WorkflowID: f.Run.WorkflowID, Owner: wire.Owner{Tenant: f.Run.Tenant}, CreatedAt: r.createdAt,
		})
		return r, r.broken(f, fmt.Errorf("no record: %w", err))
	}
	r.begin(rec, f.Body)
	r.Head = f.Head()
	r.countCreated(f)
	return r, nil
}

func (r *Run) begin(rec *wire.RunRecord, body []byte) {
	r.State = runstate.New(rec)
	r.Bytes += len(body)
	r.inputs = preview(rec.Inputs)
	if at, err := time.Parse(time.RFC3339, rec.CreatedAt); err == nil {
		// One layout for all, because lists are sorted by this text.
		r.createdAt = wire.FormatTime(at)
	}
}

// Apply adds the run's next frame. If the fold panics, the frame counts as broken, and other runs
// are still served. Errors: ErrSeen, ErrStray, ErrBroken.
func (r *Run) Apply(f *frame.Frame) (err error) {
	defer func() {
		if recover() != nil {
			err = r.broken(f, errors.New("internal panic in the fold"))
		}
	}()
	switch {
	case f.Pos <= r.Head.Pos:
		return ErrSeen
	case f.Run != r.ID, f.Kind.Begins(), r.State.Status.Terminal():
		return fmt.Errorf("%w: %s of %s at %d", ErrStray, f.Kind, f.Run.RunID, f.Pos)
	case r.Damage != "":
		return fmt.Errorf("%w: %s", ErrBroken, r.Damage)
	case f.Prev != r.Head.Hash || f.First != r.Head.Next:
		return r.broken(f, fmt.Errorf("the frame begins at event %d, event %d is next", f.First, r.Head.Next))
	}
	events, err := readEvents(f)
	if err != nil {
		return r.broken(f, err)
	}
	for _, e := range events {
		before := r.State.Status
		r.State.Apply(e)
		r.note(e)
		r.noteFact(e)
		r.noteSubstitution(e)
		r.countEvent(f, e, before)
	}
	r.Head = f.Head()
	r.Bytes += len(f.Body)
	r.owner = ownerAfter(r.owner, f)
	return nil
}

// Lose marks the run: a frame of it cannot be read.
func (r *Run) Lose(pos uint64, cause error) {
	r.Damage = fmt.Sprintf("frame at log position %d: %v", pos, cause)
}

func (r *Run) broken(f *frame.Frame, cause error) error {
	r.Lose(f.Pos, cause)
	return fmt.Errorf("%w: run %s: %s", ErrBroken, r.ID.RunID, r.Damage)
}

// readEvents reads a frame's events and compares them with its headers, because readers are served
// from the headers.
func readEvents(f *frame.Frame) ([]wire.Event, error) {
	events, err := f.Events()
	if err != nil {
		return nil, err
	}
	if len(events) != f.Last-f.First+1 || len(events) != len(f.Types) {
		return nil, fmt.Errorf("%d events, headers say %d to %d and %d types", len(events), f.First, f.Last, len(f.Types))
	}
	for i, e := range events {
		if e.Sequence != f.First+i || e.Type != f.Types[i] || e.RunID != f.Run.RunID {
			return nil, fmt.Errorf("event %d of run %s is %s, headers say event %d of run %s is %s",
				e.Sequence, e.RunID, e.Type, f.First+i, f.Run.RunID, f.Types[i])
		}
	}
	return events, nil
}
