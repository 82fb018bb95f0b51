package memory

import (
	"context"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// First returns the frame of the run's record; see runlog.Pager.
func (l *Log) First(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	frames, err := l.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	return frames[0], frames[0].Verify()
}

// Page returns some later frames of a run; see runlog.Pager.
func (l *Log) Page(ctx context.Context, run subject.Run, pos uint64, n int) ([]*frame.Frame, error) {
	frames, err := l.After(ctx, run, pos)
	frames = frames[:min(n, len(frames))]
	for i, size := 0, 0; i < len(frames); i++ {
		if size += len(frames[i].Body); size >= runlog.PageBytes {
			frames = frames[:i+1]
		}
	}
	return frames, err
}
