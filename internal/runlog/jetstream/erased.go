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

// erased counts the frames of erased and of sealed runs, according to the frames that mark them. A frame
// is listed by one mark only.
type erased struct{ erasures, seals markCount }

// frames is the last count.
func (e *erased) frames() uint64 { return e.erasures.frames.Load() + e.seals.frames.Load() }

// markCount counts the frames that marks of one kind list.
type markCount struct {
	frames atomic.Uint64

	mu sync.Mutex // held while marks are counted; guards through
	// through is the position of the last counted mark.
	through uint64
}

// notErased counts the missing records that belong to no erased or sealed run. It reads only marks that
// it has not counted. Marks are appended before their frames are removed, so that a removed frame never
// counts as lost.
func (l *Log) notErased(ctx context.Context, s js.StreamState) (uint64, error) {
	missing := lost(s)
	if missing == 0 {
		return 0, nil
	}
	err := errors.Join(
		l.count(ctx, subject.Erasures, &l.erased.erasures),
		l.count(ctx, subject.Seals, &l.erased.seals),
	)
	return missing - min(missing, l.erased.frames()), err
}

// count counts the new marks of a subject.
func (l *Log) count(ctx context.Context, of string, c *markCount) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, err := l.lastMark(ctx, of)
	if err != nil {
		return err
	}
	if last < c.through { // the log is another one, for example from a backup
		c.through = 0
		c.frames.Store(0)
	}
	if last == c.through {
		return nil
	}
	err = l.marks(ctx, of, c.through+1, last, func(f *frame.Frame, removed frame.Positions) {
		c.through = f.Pos
		c.frames.Add(removed.Count())
	})
	if err == nil {
		c.through = last // also if it is damaged
	}
	return err
}

// lastMark returns the position of the last mark of a subject; 0 if there is none.
func (l *Log) lastMark(ctx context.Context, of string) (uint64, error) {
	var last *js.RawStreamMsg
	err := l.link.Ask(ctx, func(ctx context.Context) (err error) {
		last, err = l.newest().GetLastMsgForSubject(ctx, of)
		return err
	})
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("%w: last mark of %s: %w", runlog.ErrUnavailable, of, err)
	}
	return last.Sequence, nil
}

// marks calls each with the marks of a subject between two positions. Damaged ones are left out: what
// they list counts as lost.
func (l *Log) marks(ctx context.Context, of string, from, to uint64, each func(*frame.Frame, frame.Positions)) error {
	err := natslink.Scan(ctx, l.js.Conn(), l.stream, of, from, to, func(raw *js.RawStreamMsg) (bool, error) {
		f, err := parseRaw(raw)
		if err != nil {
			return true, nil //nolint:nilerr // as above
		}
		if removed, err := f.Removed(); err == nil {
			each(f, removed)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%w: read marks of %s: %w", runlog.ErrUnavailable, of, err)
	}
	return nil
}

// erasedSpans returns the positions of removed frames.
func (l *Log) erasedSpans(ctx context.Context) (all []runlog.Span, err error) {
	for _, of := range []string{subject.Erasures, subject.Seals} {
		last, err := l.lastMark(ctx, of)
		if err != nil {
			return nil, err
		}
		if last == 0 {
			continue
		}
		err = l.marks(ctx, of, 1, last, func(_ *frame.Frame, removed frame.Positions) {
			for _, r := range removed {
				all = append(all, runlog.Span{From: r[0], To: r[1]})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
