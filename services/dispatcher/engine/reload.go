package engine

import (
	"context"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// catchUpWithLog continues after frames of another writer, if possible: it folds the log and
// applies the unflushed inputs again.
func (s *session) catchUpWithLog(ctx context.Context, notBegun []machine.Effect) error {
	moved, err := s.reloadState(ctx, notBegun)
	if err != nil {
		return err
	}
	if !moved { // the append failed for another reason
		return runlog.ErrConflict
	}
	s.unflushed.applyAgain()
	return nil
}

// readIfMoved catches up with the log if another writer appended.
func (s *session) readIfMoved(ctx context.Context) (moved bool, err error) {
	last, err := s.exec.deps.Log.Last(ctx, s.claim.run)
	if err != nil || last.Pos == s.claim.head.Pos {
		return false, nil // the next append detects it
	}
	return true, s.catchUpWithLog(ctx, nil)
}

// reloadState replaces the machine's state by that of the log, without unappended events. moved
// reports frames of another writer. The session ends unless it can continue after them.
func (s *session) reloadState(ctx context.Context, notBegun []machine.Effect) (moved bool, err error) {
	return s.reload(ctx, notBegun, maySessionAdopt)
}

// reload is reloadState. The session continues only after frames that may pass.
func (s *session) reload(ctx context.Context, notBegun []machine.Effect, may func(*frame.Frame) bool) (moved bool, err error) {
	defer s.delivery.keepExtended()()
	var (
		folded snapshot.Folded
		ferr   error
	)
	read := func() error {
		folded, ferr = s.snapshots.fold(ctx, s.claim.run, s.claim.head)
		return ferr
	}
	if ferr = read(); s.mustHold() {
		ferr = s.repeatUntilReachable(ctx, ferr, read)
	}
	if ferr != nil && len(folded.Frames) == 0 {
		return false, ferr
	}
	news, err := s.exec.foreignEvents(folded.Frames, s.claim.head.Pos, may)
	if err != nil {
		return false, err
	}
	st, head, err := s.exec.resumableState(ctx, folded, ferr)
	if err != nil {
		return false, err
	}
	if moved = head.Pos != s.claim.head.Pos; moved && s.machine.IsReplay() { // its history is ahead of the log
		return false, errLost
	}
	s.claim.head = head
	s.machine.ReplaceState(st, notBegun)
	s.spans.apply(news)
	return moved, nil
}

// foreignEvents returns the events of the frames after a position. A session that must end because
// of one of these frames gets errLost.
func (e *Executor) foreignEvents(frames []*frame.Frame, pos uint64, may func(*frame.Frame) bool) ([]wire.Event, error) {
	var out []wire.Event
	for _, f := range frames {
		if f.Pos <= pos {
			continue
		}
		if !may(f) {
			e.countConflict(f)
			return nil, errLost
		}
		events, err := f.Events()
		if err != nil {
			return nil, err
		}
		out = append(out, events...)
	}
	return out, nil
}
