package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// erased counts the frames of erased runs, according to the frames that mark them.
type erased struct {
	// frames is the last count.
	frames atomic.Uint64

	mu sync.Mutex // held while marks are counted; guards through
	// through is the position of the last counted mark.
	through uint64
}

// notErased counts the missing records that belong to no erased run. It reads only marks that it has
// not counted. Marks are appended before their frames are removed, so that a removed frame never
// counts as lost.
func (l *Log) notErased(ctx context.Context, s js.StreamState) (uint64, error) {
	missing := lost(s)
	if missing == 0 {
		return 0, nil
	}
	l.erased.mu.Lock()
	defer l.erased.mu.Unlock()
	e := &l.erased
	last, err := l.lastMark(ctx)
	if err != nil {
		return 0, err
	}
	if last < e.through { // the log is another one, for example from a backup
		e.through = 0
		e.frames.Store(0)
	}
	if last > e.through {
		err = l.marks(ctx, e.through+1, last, func(f *frame.Frame, of frame.Erasure) {
			e.through = f.Pos
			e.frames.Add(of.Count())
		})
		if err == nil {
			e.through = last // also if it is damaged
		}
	}
	return missing - min(missing, e.frames.Load()), err
}

// lastMark returns the position of the last frame that marks a run as erased; 0 if there is none.
func (l *Log) lastMark(ctx context.Context) (uint64, error) {
	var last *js.RawStreamMsg
	err := l.link.Ask(ctx, func(ctx context.Context) (err error) {
		last, err = l.newest().GetLastMsgForSubject(ctx, subject.Erasures)
		return err
	})
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("%w: last erasure: %w", runlog.ErrUnavailable, err)
	}
	return last.Sequence, nil
}

// marks calls each with the marks between two positions. Damaged ones are left out: what they erased
// counts as lost.
func (l *Log) marks(ctx context.Context, from, to uint64, each func(*frame.Frame, frame.Erasure)) error {
	err := natslink.Scan(ctx, l.js.Conn(), l.stream, subject.Erasures, from, to, func(raw *js.RawStreamMsg) (bool, error) {
		if f, err := parseRaw(raw); err == nil {
			if of, err := f.Erasure(); err == nil {
				each(f, of)
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%w: read erasures: %w", runlog.ErrUnavailable, err)
	}
	return nil
}

// erasedSpans returns the positions of erased frames.
func (l *Log) erasedSpans(ctx context.Context) (all []runlog.Span, err error) {
	last, err := l.lastMark(ctx)
	if err != nil || last == 0 {
		return nil, err
	}
	err = l.marks(ctx, 1, last, func(_ *frame.Frame, of frame.Erasure) {
		for _, r := range of.Positions {
			all = append(all, runlog.Span{From: r[0], To: r[1]})
		}
	})
	return all, err
}
