package ingest

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/frame"
)

const (
	// readAhead is how many batches of the log wait while one is applied.
	readAhead = 4
	// maxBatch is how many frames one transaction takes; a batch of the log is
	// never split.
	maxBatch = 4096
)

// arrival is what the log's reader hands to the one who applies: a batch, or
// the position of a frame that cannot be read.
type arrival struct {
	frames []*frame.Frame
	// upTo is how far the log is known once the frames are applied: damaged
	// frames among and behind them count.
	upTo    uint64
	damaged uint64
}

// stream applies the log from behind a position until something fails or ctx
// ends.
func (i *Ingester) stream(ctx context.Context, pos uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	in := make(chan arrival, readAhead)
	read := make(chan error, 1)
	go func() {
		defer close(in)
		read <- i.read(ctx, pos, in)
	}()
	err := i.applyAll(ctx, in)
	cancel()
	if rerr := <-read; err == nil {
		err = rerr
	}
	if err == nil {
		err = errors.New("run log ended")
	}
	return err
}

// read passes on what the log delivers. The log reports a damaged frame before
// the batch it stood in.
func (i *Ingester) read(ctx context.Context, pos uint64, in chan<- arrival) error {
	skipped := uint64(0)
	pass := func(a arrival) error {
		select {
		case in <- a:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return i.log.Follow(ctx, pos, func(batch []*frame.Frame) error {
		return pass(arrival{frames: batch, upTo: max(batch[len(batch)-1].Pos, skipped)})
	}, func(pos uint64, err error) {
		// Its run, which the log cannot always name, is marked when the run's next
		// frame does not fit.
		i.counts.damaged.Add(1)
		i.slog.Error("frame of the run log is damaged", "position", pos, "error", err)
		skipped = max(skipped, pos)
		_ = pass(arrival{damaged: pos}) // an ended context ends Follow by itself
	})
}

// applyAll applies what arrives, as much at once as is there.
func (i *Ingester) applyAll(ctx context.Context, in <-chan arrival) error {
	for a := range in {
		frames, reach := a.frames, a.reach(i.progress.applied())
		for more := true; more && len(frames) < maxBatch; {
			select {
			case next, ok := <-in:
				frames, reach, more = append(frames, next.frames...), next.reach(reach), ok
			default:
				more = false
			}
		}
		if len(frames) > 0 {
			if err := i.apply(ctx, frames); err != nil {
				return err
			}
		}
		i.progress.set(reach)
	}
	return nil
}

// reach is how far the log is known after the arrival. A damaged frame counts
// only if nothing before it is still to come.
func (a arrival) reach(before uint64) uint64 {
	if a.damaged == before+1 {
		return a.damaged
	}
	return max(before, a.upTo)
}
