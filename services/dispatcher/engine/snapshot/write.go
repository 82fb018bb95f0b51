package snapshot

import (
	"context"
	"errors"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Offer queues the writing of a run's snapshot, from its log at that time. It does not block. Runs
// without snapshots are ignored.
func (k *Keeper) Offer(st *runstate.State) {
	if isEligible(st) {
		k.enqueue(st, false)
	}
}

// RemoveEnded queues the removal of a run's snapshot, if it can have one. It does not block.
func (k *Keeper) RemoveEnded(st *runstate.State) {
	if st.Next >= Every && st.Record.Masking == "" {
		k.enqueue(st, true)
	}
}

// isEligible reports whether a run may have a snapshot. Clear values of a masked run are stored
// nowhere, and a later engine folds more of its run than this one.
func isEligible(st *runstate.State) bool {
	return st.Record.Masking == "" && !st.Status.Terminal() && st.EngineVersion <= wire.EngineVersion
}

func (k *Keeper) enqueue(st *runstate.State, ended bool) {
	if k.deps.Store == nil {
		return
	}
	r := frame.RunOf(st.Record)
	at := Key(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch _, waits := k.waiting[at]; {
	case waits:
		k.waiting[at] = k.waiting[at] || ended
		return
	case ended:
		delete(k.skipped, at)
	case st.Next < k.skipped[at]:
		return
	}
	select {
	case k.queue <- r:
		k.waiting[at] = ended
	default:
		k.deps.Done(Dropped)
	}
}

// Run writes and removes snapshots until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range writers {
		g.Go(func() error {
			for {
				select {
				case r := <-k.queue:
					k.process(ctx, r)
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	return g.Wait()
}

// process writes or removes the snapshot of a queued run. If the run ends while its snapshot is
// written, the snapshot is removed again.
func (k *Keeper) process(ctx context.Context, r subject.Run) {
	at := Key(r)
	if !k.hasEnded(at) {
		k.write(ctx, r)
	}
	if !k.finishWork(at, false) {
		return
	}
	if err := k.Delete(ctx, r); err != nil && ctx.Err() == nil { // the store expires it
		k.deps.Logger.Debug("snapshot of an ended run not removed", "run_id", r.RunID, "error", err)
	}
	k.finishWork(at, true)
}

func (k *Keeper) hasEnded(at string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting[at]
}

// finishWork ends the work on a run. It returns true, and changes nothing, if the run has ended and
// its snapshot must still be removed.
func (k *Keeper) finishWork(at string, removed bool) (ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting[at] && !removed {
		return true
	}
	delete(k.waiting, at)
	return false
}

// write stores the snapshot of a run and counts the outcome.
func (k *Keeper) write(ctx context.Context, r subject.Run) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			k.deps.Logger.Error("panic while a snapshot was written", "run_id", r.RunID, "panic", obs.Panic(p), "stack", string(debug.Stack()))
			k.deps.Done(Failed)
		}
	}()
	result, err := k.refresh(ctx, r)
	if err != nil {
		k.deps.Logger.Debug("snapshot not written", "run_id", r.RunID, "error", err)
	}
	if result != "" {
		k.deps.Done(result)
	}
}

// refresh folds the log and stores the result; "" means that there is nothing to store. The state
// of a session cannot be used, because it may contain values that the redactor removed from the
// log.
func (k *Keeper) refresh(ctx context.Context, r subject.Run) (Result, error) {
	f, found, err := k.readSnapshot(ctx, r, Latest)
	if err == nil && (found == Missing || found == Rejected) {
		f, err = k.FoldAll(ctx, r)
	}
	switch {
	case err != nil || found == Unavailable:
		return Failed, err
	case f.State.Status.Terminal():
		return "", k.Delete(ctx, r)
	case !isEligible(f.State), f.From > 0 && f.Head.Next-f.From < Every:
		return "", nil
	}
	err = k.deps.Store.put(ctx, &Snapshot{Run: frame.RunOf(f.State.Record), Head: f.Head, Record: f.record, State: f.State})
	if err == nil {
		return Written, nil
	}
	k.skipUntil(Key(r), 2*f.Head.Next)
	if errors.Is(err, errTooLarge) {
		return TooLarge, err
	}
	return Failed, err
}

// skipUntil skips a run until it has a number of events.
func (k *Keeper) skipUntil(at string, events int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.skipped) >= maxSkipped {
		clear(k.skipped)
	}
	k.skipped[at] = events
}

// Delete removes the snapshot of a run, if there is one. Errors: kv.ErrUnavailable.
func (k *Keeper) Delete(ctx context.Context, r subject.Run) error {
	if k.deps.Store == nil {
		return nil
	}
	return k.deps.Store.delete(ctx, r)
}
