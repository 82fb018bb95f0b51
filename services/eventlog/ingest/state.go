package ingest

import (
	"context"
	"fmt"
)

// Wait blocks until the store holds the log up to pos, or ctx ends.
func (i *Ingester) Wait(ctx context.Context, pos uint64) error { return i.progress.wait(ctx, pos) }

// Applied returns the applied position of the log. It goes back when the store is rebuilt.
func (i *Ingester) Applied() uint64 { return i.progress.applied() }

// Rebuild requests a rebuild of the store, for a reader that found it damaged. It does not wait;
// calls during a rebuild have no effect.
func (i *Ingester) Rebuild(why error) { i.again(fmt.Errorf("%w: %w", errRebuild, why)) }

// again restarts following the log.
func (i *Ingester) again(why error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.restart != nil {
		i.restart(why)
		i.restart = nil
	}
}

func (i *Ingester) setRestart(f context.CancelCauseFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.restart = f
}

// Ready returns nil if the store keeps up with the log, otherwise the reason.
func (i *Ingester) Ready() error {
	i.mu.Lock()
	trouble := i.trouble
	i.mu.Unlock()
	if trouble != nil {
		return fmt.Errorf("read model: %w", trouble)
	}
	if applied, target := i.progress.applied(), i.target.Load(); applied < target {
		return fmt.Errorf("read model: has applied %d of %d frames", applied, target)
	}
	return nil
}

func (i *Ingester) setTrouble(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.trouble = err
}

// Stats returns the counters.
func (i *Ingester) Stats() Stats {
	return Stats{
		Frames: i.counts.frames.Load(), Batches: i.counts.batches.Load(), Damaged: i.counts.damaged.Load(),
		Refused: i.counts.refused.Load(), Rebuilds: i.counts.rebuilds.Load(),
		HotBytes: i.counts.hotBytes.Load(), Applied: i.progress.applied(),
		Target: i.target.Load(), Lost: i.ending.lost(),
	}
}
