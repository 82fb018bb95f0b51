package jetstream

import (
	"context"
	"fmt"

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

// join is Keep without urgency, for readers.
func (l *Log) join(ctx context.Context, pos uint64) error {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	return unkept(pos, l.cfg.OnDisk.Join(ctx, subject.Stream, pos))
}

func unkept(pos uint64, err error) error {
	if err != nil {
		return fmt.Errorf("%w: keep position %d: %w", runlog.ErrUnavailable, pos, err)
	}
	return nil
}

// keeping returns a frame once it is on disk, because its reader may act on it.
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

// keptAll is keeping for frames in order.
func (l *Log) keptAll(ctx context.Context, frames []*frame.Frame, err error) ([]*frame.Frame, error) {
	if err != nil || len(frames) == 0 {
		return frames, err
	}
	return frames, l.Keep(ctx, frames[len(frames)-1].Pos)
}
