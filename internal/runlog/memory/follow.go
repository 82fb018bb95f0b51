package memory

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// followBatch bounds a batch, as the durable log does.
const followBatch = 1024

// Follow reads the log in order; see runlog.Follower.
func (l *Log) Follow(ctx context.Context, pos uint64, handle func([]*frame.Frame) error, damaged func(subject.Run, uint64, error)) error {
	for {
		frames, end, changed, err := l.after(ctx, pos)
		if err != nil {
			return err
		}
		if end == pos {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				continue
			}
		}
		pos = end
		if batch := intact(frames, damaged); len(batch) > 0 {
			if err := handle(batch); err != nil {
				return err
			}
		}
	}
}

// after copies up to a batch of frames after pos, up to the position end, and returns the channel
// that closes when there are more.
func (l *Log) after(ctx context.Context, pos uint64) (out []*frame.Frame, end uint64, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0, nil, ctx.Err()
	}
	if err := l.faults.reads; err != nil {
		return nil, 0, nil, err
	}
	if pos >= uint64(len(l.frames)) {
		return nil, pos, l.changed, nil
	}
	stored := l.frames[pos:min(uint64(len(l.frames)), pos+followBatch)]
	for _, f := range stored {
		if f != nil {
			c := *f
			out = append(out, &c)
		}
	}
	return out, pos + uint64(len(stored)), l.changed, nil
}

// intact reports frames that do not verify, and removes them.
func intact(frames []*frame.Frame, damaged func(subject.Run, uint64, error)) []*frame.Frame {
	out := frames[:0:0]
	for _, f := range frames {
		if err := f.Verify(); err != nil {
			damaged(f.Run, f.Pos, err)
			continue
		}
		out = append(out, f)
	}
	return out
}

// Newest returns the same as End: no frame is ever lost.
func (l *Log) Newest(ctx context.Context) (uint64, error) { return l.End(ctx) }

// End returns the position of the last frame; see runlog.Follower.
func (l *Log) End(ctx context.Context) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return 0, err
	}
	return uint64(len(l.frames)), nil
}
