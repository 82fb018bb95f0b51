package project

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Frames reads stored frames.
type Frames interface {
	Frames(ctx context.Context, key store.Key, from, limit int) ([]store.Frame, error)
}

// loadPage is the number of events read from the store in one step.
const loadPage = 2000

// Load folds a run from the store up to its row. Its marks count as not yet returned, although most
// stores have them: a run stored by an older version lacks marks and gets them with its next batch.
// Errors: store.ErrDamaged, and the store's own.
func Load(ctx context.Context, from Frames, row store.Run) (*Run, error) {
	return load(ctx, from, row, nil)
}

// LoadToCount is Load for a run whose next frames are counted; see Counted.
func LoadToCount(ctx context.Context, from Frames, row store.Run) (*Run, error) {
	return load(ctx, from, row, &counter{})
}

func load(ctx context.Context, from Frames, row store.Run, c *counter) (*Run, error) {
	r, err := loadAt(ctx, from, row, row.Head, c)
	if err != nil {
		return nil, err
	}
	r.at(row)
	return r, nil
}

// LoadAt folds a run up to and including event head. The run's Head.Pos and Hash are then unknown,
// so only stored frames can be applied.
func LoadAt(ctx context.Context, from Frames, row store.Run, head int) (*Run, error) {
	return loadAt(ctx, from, row, head, nil)
}

func loadAt(ctx context.Context, from Frames, row store.Run, head int, c *counter) (*Run, error) {
	r := &Run{
		counter:   c,
		ID:        subject.Run{Tenant: row.Tenant, WorkflowID: row.WorkflowID, RunID: row.RunID},
		createdAt: row.CreatedAt, Damage: row.Damage,
	}
	frames, err := from.Frames(ctx, row.Key, store.RecordFirst, 1)
	if err != nil {
		return nil, err
	}
	if len(frames) == 0 || frames[0].First != store.RecordFirst {
		return r, r.withoutRecord(row)
	}
	rec, err := wire.ParseRunRecord(frames[0].Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	r.begin(rec, frames[0].Body)
	r.createdAt = row.CreatedAt
	return r, r.read(ctx, from, head)
}

// withoutRecord creates the state of a run whose start frame was unreadable.
func (r *Run) withoutRecord(row store.Run) error {
	if row.Damage == "" {
		return fmt.Errorf("%w: run %s has no record", store.ErrDamaged, row.RunID)
	}
	r.State = runstate.New(&wire.RunRecord{
		RunID: row.RunID, WorkflowID: row.WorkflowID, Owner: wire.Owner{Tenant: row.Tenant}, CreatedAt: row.CreatedAt,
	})
	return nil
}

// Extend folds what was stored since, up to a newer row.
func (r *Run) Extend(ctx context.Context, from Frames, row store.Run) error {
	if err := r.read(ctx, from, row.Head); err != nil {
		return err
	}
	r.at(row)
	return nil
}

func (r *Run) at(row store.Run) {
	r.Head = frame.Head{Pos: row.Pos, Hash: row.Hash, Next: row.Head + 1}
	r.Damage = row.Damage
	// Stored frames have no writer; the row has the owner.
	r.owner = row.Owner
	if w := ParseWaits(row.Waits); w != nil && row.Owner == (store.Owner{}) {
		r.owner.Process = w.HeldBy // rows of an older version have no owner
	}
}

// read folds stored events up to and including event head.
func (r *Run) read(ctx context.Context, from Frames, head int) error {
	for r.State.Next <= head {
		frames, err := from.Frames(ctx, Key(r.ID), r.State.Next, loadPage)
		if err != nil {
			return err
		}
		next := r.State.Next
		for _, f := range frames {
			if err := r.replayFrame(f, head); err != nil {
				return err
			}
		}
		if r.State.Next == next {
			return fmt.Errorf("%w: run %s lacks event %d of %d", store.ErrDamaged, r.ID.RunID, next, head)
		}
	}
	r.Head.Next = r.State.Next
	return nil
}

// replayFrame folds a stored frame's events up to and including event head.
func (r *Run) replayFrame(f store.Frame, head int) error {
	if r.State.Next > head { // the page extends beyond the requested events
		return nil
	}
	if f.First > r.State.Next {
		return fmt.Errorf("%w: run %s lacks event %d", store.ErrDamaged, r.ID.RunID, r.State.Next)
	}
	events, err := wire.ParseEvents(f.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	r.Bytes += len(f.Body)
	for _, e := range events {
		if e.Sequence <= head {
			r.State.Apply(e) // ignores repeated events
			r.note(e)
			r.noteFact(e)
			r.noteSubstitution(e)
			r.countEvent(nil, e, r.State.Status)
			r.givenSubstituted = len(r.substituted) // every store has them
		}
	}
	return nil
}

// Replay folds the document of the run's next event.
func (r *Run) Replay(doc []byte) error {
	var e wire.Event
	if err := json.Unmarshal(doc, &e); err != nil {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	r.State.Apply(e)
	return nil
}
