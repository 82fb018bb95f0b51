package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Mark marks a run as erased; see runlog.Eraser.
func (l *Log) Mark(ctx context.Context, run subject.Run, why frame.Cause) (marked bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return false, err
	}
	var positions []uint64
	var frames []*frame.Frame
	for _, i := range l.runs[keyOf(run)] {
		frames, positions = append(frames, l.frames[i]), append(positions, l.frames[i].Pos)
	}
	if len(frames) == 0 {
		return false, fmt.Errorf("%w: %s", runlog.ErrNotFound, run.RunID)
	}
	switch last := frames[len(frames)-1]; {
	case last.Kind == subject.Erase:
		return false, nil
	case last.Kind == subject.Seal: // it lists the positions, and stays
		l.store(frame.NewErase(last.Run, last.Head(), nil, why))
		return true, nil
	case last.Kind != subject.End && frame.VerifyChain(frames) == nil:
		return false, fmt.Errorf("%w: %s", runlog.ErrActive, run.RunID)
	default:
		l.store(frame.NewErase(last.Run, last.Head(), positions, why))
		return true, nil
	}
}

// Remaining returns the frames that are still there; see runlog.Eraser.
func (l *Log) Remaining(ctx context.Context, mark *frame.Frame) ([]*frame.Frame, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return nil, err
	}
	var out []*frame.Frame
	for _, i := range l.runs[keyOf(mark.Run)] {
		if f := *l.frames[i]; !isMark(&f) && f.Verify() == nil {
			out = append(out, &f)
		}
	}
	return out, nil
}

// Purge removes the frames of a marked run; see runlog.Eraser.
func (l *Log) Purge(ctx context.Context, mark *frame.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return err
	}
	l.remove(mark.Run)
	return nil
}

// isMark reports whether a frame explains removed frames. It stays.
func isMark(f *frame.Frame) bool { return f.Kind == subject.Erase || f.Kind == subject.Seal }

// remove removes the frames of a run, except its marks. The caller holds mu.
func (l *Log) remove(run subject.Run) {
	key := keyOf(run)
	l.runs[key] = slices.DeleteFunc(l.runs[key], func(i int) bool {
		f := l.frames[i]
		if isMark(f) {
			return false
		}
		l.ready = slices.DeleteFunc(l.ready, func(it *item) bool { return it.frame == f })
		delete(l.held, f.Pos)
		l.frames[i] = nil
		return true
	})
}

// Erasures delivers erasures; see runlog.Eraser.
func (l *Log) Erasures(ctx context.Context, handle func(context.Context, *frame.Frame) error) error {
	for {
		mark, changed := l.nextMark()
		if mark == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				continue
			}
		}
		if err := handle(ctx, mark); err != nil {
			if ctx.Err() != nil {
				return errors.Join(ctx.Err(), err)
			}
			lifecycle.Wait(ctx, l.delay)
			continue
		}
		l.mu.Lock()
		l.carriedOut = append(l.carriedOut, mark.Pos)
		l.mu.Unlock()
	}
}

// nextMark returns the first mark that was not carried out.
func (l *Log) nextMark() (*frame.Frame, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.frames {
		if f != nil && f.Kind == subject.Erase && !slices.Contains(l.carriedOut, f.Pos) {
			c := *f
			return &c, l.changed
		}
	}
	return nil, l.changed
}
