package cold

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// span selects blocks: those with a position after Pos, and with an event from First on.
type span struct {
	pos  uint64
	from int
}

// limit ends a read when it returns true for the frames so far.
type limit func(frames []*frame.Frame) bool

func unlimited([]*frame.Frame) bool { return false }

// read returns the frames of the selected blocks, whole blocks only. Errors: ErrNotFound, ErrUnavailable,
// frame.ErrDamaged.
func read(ctx context.Context, from Reader, run subject.Run, s span, enough limit) (out []*frame.Frame, err error) {
	err = walk(ctx, from, run, s, func(frames []*frame.Frame) (more bool) {
		out = append(out, frames...)
		return !enough(out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// walk calls each with the frames of each selected block, until it returns false. Errors are those of
// read.
func walk(ctx context.Context, from Reader, run subject.Run, s span, each func([]*frame.Frame) (more bool)) error {
	of, blocks, err := from.Blocks(ctx, run)
	if err != nil {
		return err
	}
	var before Block
	for i, b := range blocks {
		if b.Pos > s.pos && b.Next > s.from {
			if b.Data, err = from.Data(ctx, run, i); err != nil {
				return err
			}
			frames, err := decodeBlock(of, before, b)
			if err != nil {
				return err
			}
			if !each(frames) {
				return nil
			}
		}
		b.Data = nil
		before = b
	}
	return nil
}

// Frames returns the frames of a run in order, starting with the one that holds event from (-1: with the
// record), until they hold at least n events or size bytes. Errors: ErrNotFound, ErrUnavailable,
// frame.ErrDamaged.
func Frames(ctx context.Context, store Reader, run subject.Run, from, n, size int) ([]*frame.Frame, error) {
	end := func(frames []*frame.Frame) int {
		events, bytes := 0, 0
		for i, f := range frames {
			if f.Last < from {
				continue
			}
			events, bytes = events+f.Last+1-max(f.First, from, 0), bytes+len(f.Body)
			if events >= n || bytes >= size {
				return i + 1
			}
		}
		return 0
	}
	frames, err := read(ctx, store, run, span{from: from}, func(frames []*frame.Frame) bool { return end(frames) > 0 })
	if err != nil {
		return nil, err
	}
	if i := end(frames); i > 0 {
		frames = frames[:i]
	}
	for len(frames) > 0 && frames[0].Last < from {
		frames = frames[1:]
	}
	return frames, nil
}

// All returns all frames of a run. Errors: ErrNotFound, ErrUnavailable, frame.ErrDamaged.
func All(ctx context.Context, store Reader, run subject.Run) ([]*frame.Frame, error) {
	return read(ctx, store, run, span{from: -1}, unlimited)
}

// salvage returns the frames of a run's readable blocks, and why there are no others. Errors: ErrNotFound,
// ErrUnavailable.
func salvage(ctx context.Context, from Reader, run subject.Run) (out []*frame.Frame, lost, err error) {
	of, blocks, err := from.Blocks(ctx, run)
	if errors.Is(err, frame.ErrDamaged) {
		return nil, err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var before Block
	for i, b := range blocks {
		var frames []*frame.Frame
		data, err := from.Data(ctx, run, i)
		if err == nil {
			frames, err = decodeBlock(of, before, Block{Next: b.Next, Pos: b.Pos, Hash: b.Hash, Data: data})
		}
		switch {
		case err == nil:
			out = append(out, frames...)
		case errors.Is(err, frame.ErrDamaged):
			lost = err
		default:
			return nil, nil, err
		}
		before = b
	}
	return out, lost, nil
}

// last returns the last frame of a run.
func last(ctx context.Context, from Reader, run subject.Run) (*frame.Frame, error) {
	of, blocks, err := from.Blocks(ctx, run)
	if err != nil {
		return nil, err
	}
	n := len(blocks) - 1
	if n < 0 {
		return nil, fmt.Errorf("%w: run %s in the cold store has no blocks", frame.ErrDamaged, run.RunID)
	}
	var before Block
	if n > 0 {
		before = blocks[n-1]
	}
	if blocks[n].Data, err = from.Data(ctx, run, n); err != nil {
		return nil, err
	}
	frames, err := decodeBlock(of, before, blocks[n])
	if err != nil {
		return nil, err
	}
	return frames[len(frames)-1], nil
}

// failure converts an error of the store for a run that is sealed in the log.
func (l *Log) failure(ctx context.Context, run subject.Run, err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		if _, lerr := l.Hot.Last(ctx, run); errors.Is(lerr, runlog.ErrErased) {
			return lerr // since the log was read
		}
		err = fmt.Errorf("%w: the log says that run %s is sealed: %w", frame.ErrDamaged, run.RunID, err)
		l.faults.Unreadable(run, err)
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	case errors.Is(err, frame.ErrDamaged):
		l.faults.Unreadable(run, err)
	}
	return err
}
