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

// TenantPage returns some frames of a tenant; see runlog.TenantPager.
func (l *Log) TenantPage(ctx context.Context, tenant string, after, upTo uint64, n int, damaged runlog.Damaged) ([]*frame.Frame, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return nil, 0, err
	}
	var out []*frame.Frame
	size := 0
	for pos := after; pos < min(upTo, uint64(len(l.frames))); pos++ {
		if l.frames[pos] == nil {
			continue
		}
		f := *l.frames[pos]
		if f.Run.Tenant != tenant {
			continue
		}
		if err := f.Verify(); err != nil {
			damaged(f.Run, f.Pos, err)
			continue
		}
		out, size = append(out, &f), size+len(f.Body)
		if len(out) == n || size >= runlog.PageBytes {
			return out, f.Pos, nil
		}
	}
	return out, upTo, nil
}
