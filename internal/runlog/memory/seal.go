package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func sealed(run subject.Run) error { return fmt.Errorf("%w: %s", runlog.ErrSealed, run.RunID) }

// Ended returns the last frames of ended runs; see runlog.Sealer.
func (l *Log) Ended(
	ctx context.Context, after uint64, before time.Time, n int,
) (ends []*frame.Frame, next uint64, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return nil, after, false, err
	}
	next = after
	for _, f := range l.frames[min(after, uint64(len(l.frames))):] {
		if len(ends) == n {
			return ends, next, true, nil
		}
		if f == nil || f.Kind != subject.End {
			continue
		}
		if !f.Stored.Before(before) {
			break
		}
		next = f.Pos
		if chain := l.runs[keyOf(f.Run)]; l.lastPos(chain) == f.Pos && f.Verify() == nil {
			c := *f
			ends = append(ends, &c)
		}
	}
	return ends, next, false, nil
}

// Seal marks a run as sealed; see runlog.Sealer.
func (l *Log) Seal(ctx context.Context, run subject.Run, head frame.Head, positions []uint64) error {
	_, err := l.Append(ctx, frame.NewSeal(run, head, positions), head.Pos)
	if errors.Is(err, runlog.ErrSealed) {
		return nil
	}
	return err
}

// Drop removes the frames of a sealed run; see runlog.Sealer.
func (l *Log) Drop(ctx context.Context, run subject.Run, _ []uint64, _ runlog.Removal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return err
	}
	chain := l.runs[keyOf(run)]
	if len(chain) == 0 || l.frames[chain[len(chain)-1]].Kind != subject.Seal {
		return fmt.Errorf("%w: run %s is not sealed", runlog.ErrConflict, run.RunID)
	}
	l.remove(run)
	return nil
}

// Extent returns the size of the log; see runlog.Sealer.
func (l *Log) Extent(ctx context.Context) (e runlog.Extent, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return e, err
	}
	e.End = uint64(len(l.frames)) - 1
	for _, f := range l.frames {
		if f != nil {
			e.Bytes += uint64(len(f.Body))
		}
	}
	return e, nil
}
