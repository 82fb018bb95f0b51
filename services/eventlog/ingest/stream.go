package ingest

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

const (
	// readAhead is the number of batches buffered while one is applied.
	readAhead = 2
	// maxBatch is the number of frames per transaction, maxBatchBytes their size. A batch of the log is
	// split only after a sealed run that exceeds them.
	maxBatch      = 4096
	maxBatchBytes = 4 << 20
)

// unreadable is a damaged frame of a run.
type unreadable struct {
	key   store.Key
	pos   uint64
	cause error
}

// arrival is a message from the log's reader: a batch, or the position of an unreadable frame.
type arrival struct {
	frames []*frame.Frame
	// upTo is the position reached once the frames are applied, including damaged frames among and
	// after them.
	upTo    uint64
	damaged uint64
	// lost is the unreadable frame if its run is known.
	lost *unreadable
}

// stream applies the log after a position until an error or until ctx ends.
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

// read forwards what the log delivers. The log reports a damaged frame before the batch that
// contained it.
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
	}, func(run subject.Run, pos uint64, err error) {
		i.counts.damaged.Add(1)
		i.slog.Error("frame of the run log is damaged", "position", pos,
			"tenant", run.Tenant, "run_id", run.RunID, "error", err)
		skipped = max(skipped, pos)
		a := arrival{damaged: pos}
		if run != (subject.Run{}) { // otherwise the run is marked when its next frame does not fit
			a.lost = &unreadable{key: project.Key(run), pos: pos, cause: err}
		}
		_ = pass(a) // an ended context ends Follow
	})
}

// applyAll applies arrivals, as many as are available in one batch.
func (i *Ingester) applyAll(ctx context.Context, in <-chan arrival) error {
	for a := range in {
		frames, reach := a.frames, a.reach(i.progress.applied())
		var lost []unreadable
		if a.lost != nil {
			lost = append(lost, *a.lost)
		}
		for more, size := true, bytesOf(frames); more && len(frames) < maxBatch && size < maxBatchBytes; {
			select {
			case next, ok := <-in:
				frames, reach, more = append(frames, next.frames...), next.reach(reach), ok
				size += bytesOf(next.frames)
				if next.lost != nil {
					lost = append(lost, *next.lost)
				}
			default:
				more = false
			}
		}
		if len(frames) > 0 {
			if err := i.apply(ctx, frames); err != nil {
				return err
			}
		}
		if len(lost) > 0 {
			if err := i.mark(ctx, lost); err != nil {
				return err
			}
		}
		i.progress.set(reach)
	}
	return nil
}

func bytesOf(frames []*frame.Frame) (n int) {
	for _, f := range frames {
		n += len(f.Body)
	}
	return n
}

// reach returns the position reached after the arrival. A damaged frame counts only if no frame
// before it is still pending.
func (a arrival) reach(before uint64) uint64 {
	if a.damaged == before+1 {
		return a.damaged
	}
	return max(before, a.upTo)
}
