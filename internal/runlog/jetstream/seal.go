package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func sealed(run subject.Run) error { return fmt.Errorf("%w: %s", runlog.ErrSealed, run.RunID) }

// Erasable reports whether frames can be removed from the log.
func (l *Log) Erasable() bool { return natslink.Erasable(l.leader) }

// visitedEach is how many ends are read for each run that Ended may return: marked runs whose frames
// are not removed yet are left out.
const visitedEach = 4

// Ended returns the last frames of ended runs; see runlog.Sealer.
func (l *Log) Ended(
	ctx context.Context, after uint64, before time.Time, n int,
) (ends []*frame.Frame, next uint64, more bool, err error) {
	next = after
	for range n * visitedEach {
		raw, err := l.getOfLeader(ctx, next+1, subject.Ends)
		if errors.Is(err, js.ErrMsgNotFound) || err == nil && !raw.Time.Before(before) {
			return ends, next, false, nil
		}
		if err != nil {
			return nil, after, false, fmt.Errorf("%w: read ended runs after %d: %w", runlog.ErrUnavailable, next, err)
		}
		next = raw.Sequence
		f, err := parseRaw(raw)
		if err != nil {
			continue // a damaged run stays
		}
		switch _, err := l.Last(ctx, f.Run); {
		case err == nil:
			ends = append(ends, f)
		case errors.Is(err, runlog.ErrUnavailable):
			return nil, after, false, err
		}
		if len(ends) == n {
			break
		}
	}
	return ends, next, true, nil
}

// Seal marks a run as sealed; see runlog.Sealer.
func (l *Log) Seal(ctx context.Context, run subject.Run, head frame.Head, positions []uint64) error {
	if !natslink.Erasable(l.leader) {
		return runlog.ErrRemovalDenied
	}
	_, err := l.Append(ctx, frame.NewSeal(run, head, positions), head.Pos)
	if errors.Is(err, runlog.ErrSealed) { // by an earlier attempt, or by another process
		return l.Keep(ctx, 0)
	}
	return err
}

// Drop removes the frames of a sealed run; see runlog.Sealer.
func (l *Log) Drop(ctx context.Context, run subject.Run, positions []uint64, how runlog.Removal) error {
	switch _, err := l.Last(ctx, run); {
	case errors.Is(err, runlog.ErrUnavailable):
		return err
	case !errors.Is(err, runlog.ErrSealed):
		return fmt.Errorf("%w: run %s is not sealed", runlog.ErrConflict, run.RunID)
	}
	by := natslink.EraseMessage
	if how == runlog.Release {
		by = natslink.DropMessage
	}
	return l.remove(ctx, run, positions, by)
}

// fileBytes is the size of the server's files of a stream without a limit.
const fileBytes = 8 << 20

// Extent returns the size of the log; see runlog.Sealer.
func (l *Log) Extent(ctx context.Context) (e runlog.Extent, err error) {
	err = l.link.Ask(ctx, func(ctx context.Context) error {
		info, err := l.leader.Info(ctx)
		if err == nil {
			e = runlog.Extent{Bytes: info.State.Bytes, End: info.State.LastSeq, FileBytes: fileBytes}
		}
		return err
	})
	if err != nil {
		return e, fmt.Errorf("%w: size of the log: %w", runlog.ErrUnavailable, err)
	}
	return e, nil
}

// NewestSeal returns the position of the newest mark of a sealed run; 0 if there is none. Errors:
// runlog.ErrUnavailable.
func (l *Log) NewestSeal(ctx context.Context) (uint64, error) { return l.lastMark(ctx, subject.Seals) }

// LacksSealed reports whether a store lacks a run that was sealed after a position and is not erased. If
// the store knows the newest one, it is the store of the others, too. Errors: runlog.ErrUnavailable, those
// of knows.
func (l *Log) LacksSealed(ctx context.Context, after uint64, knows func(context.Context, subject.Run) (bool, error)) (lacks bool, err error) {
	last, err := l.lastMark(ctx, subject.Seals)
	if err != nil || last <= after {
		return false, err
	}
	raw, err := l.getOfLeader(ctx, last, subject.Seals)
	if err != nil {
		return false, fmt.Errorf("%w: read the newest mark of a sealed run: %w", runlog.ErrUnavailable, err)
	}
	if f, err := parseRaw(raw); err == nil {
		if known, err := knows(ctx, f.Run); known || err != nil {
			return false, err
		}
	}
	err = natslink.Scan(ctx, l.js.Conn(), l.stream, subject.Seals, after+1, last, func(raw *js.RawStreamMsg) (bool, error) {
		f, err := parseRaw(raw)
		if err != nil {
			return true, nil //nolint:nilerr // its run cannot be read with any store
		}
		if lacks, err = l.lacks(ctx, f.Run, knows); err != nil {
			return false, err
		}
		return !lacks, nil
	})
	if err != nil {
		return false, fmt.Errorf("%w: read marks of sealed runs: %w", runlog.ErrUnavailable, err)
	}
	return lacks, nil
}

// lacks reports whether a sealed run is neither known nor erased.
func (l *Log) lacks(ctx context.Context, run subject.Run, knows func(context.Context, subject.Run) (bool, error)) (bool, error) {
	if known, err := knows(ctx, run); known || err != nil {
		return false, err
	}
	switch _, err := l.Last(ctx, run); {
	case errors.Is(err, runlog.ErrErased):
		return false, nil
	case errors.Is(err, runlog.ErrUnavailable):
		return false, err
	}
	return true, nil
}
