package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// Folded is a run folded from its log.
type Folded struct {
	State *runstate.State
	Head  frame.Head
	// Frames are the frames that were read: all, or those from the snapshot's frame on.
	Frames []*frame.Frame
	// From is the first sequence after the snapshot; 0 if the whole log was folded.
	From int

	record []byte
}

// readTimeout limits the wait for a snapshot: folding the log takes less time.
const readTimeout = 500 * time.Millisecond

// FoldAll folds a run from all frames of its log. A failed fold returns the frames.
func (k *Keeper) FoldAll(ctx context.Context, r subject.Run) (Folded, error) {
	frames, err := k.deps.Log.Run(ctx, r)
	if err != nil {
		return Folded{}, err
	}
	st, head, err := machine.Load(frames)
	return Folded{State: st, Head: head, Frames: frames, record: frames[0].Body}, err
}

// Latest is a position after every frame.
const Latest = ^uint64(0)

// Read folds a run from its snapshot, if it has a valid one of a frame up to position upTo, else
// like FoldAll. r.WorkflowID may be empty.
func (k *Keeper) Read(ctx context.Context, r subject.Run, upTo uint64) (Folded, error) {
	if k.deps.Store == nil {
		return k.FoldAll(ctx, r)
	}
	f, result, err := k.readSnapshot(ctx, r, upTo)
	if result != "" {
		k.deps.Done(result)
	}
	if err == nil && result != Hit {
		f, err = k.FoldAll(ctx, r)
	}
	if err == nil && f.Head.Next-f.From >= 2*Every { // no session offered it in time
		k.Offer(f.State)
	}
	return f, err
}

// readSnapshot folds the frames after a run's snapshot. Without a valid snapshot it returns the
// reason: "" if the snapshot is of a frame after upTo. Errors are those of the log.
func (k *Keeper) readSnapshot(ctx context.Context, r subject.Run, upTo uint64) (Folded, Result, error) {
	asking, cancel := context.WithTimeout(ctx, readTimeout)
	snap, err := k.deps.Store.get(asking, r)
	cancel()
	switch {
	case ctx.Err() != nil:
		return Folded{}, Unavailable, context.Cause(ctx)
	case errors.Is(err, kv.ErrNotFound):
		return Folded{}, Missing, nil
	case errors.Is(err, errRejected):
		return Folded{}, k.logRejected(r, err), nil
	case err != nil:
		return Folded{}, Unavailable, nil
	case snap.Head.Pos > upTo:
		return Folded{}, "", nil
	}
	f, err := k.foldAfter(ctx, snap)
	if errors.Is(err, errRejected) { // the whole log shows whether it is damaged
		return Folded{}, k.logRejected(r, err), nil
	}
	return f, Hit, err
}

func (k *Keeper) logRejected(r subject.Run, why error) Result {
	k.deps.Logger.Warn("snapshot rejected; the run is folded from its log", "run_id", r.RunID, "error", why)
	return Rejected
}

// foldAfter folds the frames after a snapshot, if the log has the snapshot's frame. Errors:
// errRejected, and those of the log.
func (k *Keeper) foldAfter(ctx context.Context, snap *Snapshot) (Folded, error) {
	frames, err := k.deps.Log.After(ctx, snap.Run, snap.Head.Pos-1)
	switch {
	case errors.Is(err, frame.ErrDamaged):
		return Folded{}, fmt.Errorf("%w: %w", errRejected, err)
	case err != nil:
		return Folded{}, err
	case len(frames) == 0 || !snap.endsWith(frames[0]):
		return Folded{}, fmt.Errorf("%w: the log has no such frame at %d", errRejected, snap.Head.Pos)
	}
	head, err := machine.Continue(snap.State, snap.Head, frames[1:])
	if err != nil {
		return Folded{}, fmt.Errorf("%w: %w", errRejected, err)
	}
	return Folded{State: snap.State, Head: head, Frames: frames, From: snap.Head.Next, record: snap.Record}, nil
}

// endsWith reports whether a frame of the log is the last one of the snapshot.
func (s *Snapshot) endsWith(f *frame.Frame) bool {
	return f.Pos == s.Head.Pos && f.Hash == s.Head.Hash && f.Last+1 == s.Head.Next && f.Run.RunID == s.Run.RunID && f.Verify() == nil
}
