package jetstream

import (
	"context"
	"fmt"
	"sort"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Stage stores a frame; see runlog.Stager.
func (l *Log) Stage(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	pos, err := l.store(ctx, f, after)
	if err == nil {
		l.cfg.OnDisk.Begin(subject.Stream, pos)
	}
	return pos, err
}

// Keep waits for the disk; see runlog.Stager. Position 0 is all that is there.
func (l *Log) Keep(ctx context.Context, pos uint64) error {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	return unkept(pos, l.cfg.OnDisk.Wait(ctx, subject.Stream, pos))
}

// join is Keep for whoever only looks on, and is in no hurry: it also gives up to where the log is kept.
func (l *Log) join(ctx context.Context, pos uint64) (kept uint64, err error) {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	kept, err = l.cfg.OnDisk.Join(ctx, subject.Stream, pos)
	return kept, unkept(pos, err)
}

// hand hands frames over, in order, as they are kept: what somebody is in a hurry for does not wait for what is
// behind it.
func (l *Log) hand(ctx context.Context, frames []*frame.Frame, over func([]*frame.Frame) error) error {
	for len(frames) > 0 {
		kept, err := l.join(ctx, frames[0].Pos)
		if err != nil {
			return err
		}
		n := sort.Search(len(frames), func(i int) bool { return frames[i].Pos > kept })
		if err := over(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

func unkept(pos uint64, err error) error {
	if err != nil {
		return fmt.Errorf("%w: keep position %d: %w", runlog.ErrUnavailable, pos, err)
	}
	return nil
}

// keeping gives a frame once it is on the disk: whoever reads it may do, or tell, what follows from it.
func (l *Log) keeping(ctx context.Context, raw *js.RawStreamMsg) (*frame.Frame, error) {
	f, err := parseRaw(raw)
	if err != nil {
		return nil, err
	}
	if err := l.Keep(ctx, f.Pos); err != nil {
		return nil, err
	}
	return f, nil
}

// keptAll is keeping, of frames in order.
func (l *Log) keptAll(ctx context.Context, frames []*frame.Frame, err error) ([]*frame.Frame, error) {
	if err != nil || len(frames) == 0 {
		return frames, err
	}
	return frames, l.Keep(ctx, frames[len(frames)-1].Pos)
}
