package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// wait serves the effects until one of them ends, an instant is due, the log has moved or the
// process drains. Of what is ready at the same time it takes the first in this order: no extension
// waits for busy effects, a lost run is left before more is done to it, and the same inputs lead to
// the same log.
func (s *session) wait(ctx context.Context) error {
	due, stopDue := s.dueTimer()
	defer stopDue()
	for {
		if _, ok := poll(s.heartbeat); ok {
			s.hold.extend()
		}
		switch took, through, err := s.next(ctx, due); {
		case through || err != nil:
			return err
		case took:
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.heartbeat:
			s.hold.extend()
		case <-s.x.drain.begun:
			return nil
		case <-s.moved:
			_, err := s.look(ctx)
			return err
		case <-due:
			return nil
		case d := <-s.done:
			return s.settleAll(ctx, d)
		case r := <-s.inbox:
			if err := s.serve(ctx, r); err != nil {
				return err
			}
		}
	}
}

// next takes one thing that is ready, if any is; through says that the wait is over.
func (s *session) next(ctx context.Context, due <-chan time.Time) (took, through bool, err error) {
	if ctx.Err() != nil {
		return true, true, context.Cause(ctx)
	}
	if _, ok := poll(s.moved); ok {
		_, err := s.look(ctx)
		return true, true, err
	}
	if _, ok := poll(due); ok {
		return true, true, nil
	}
	if d, ok := poll(s.done); ok {
		return true, true, s.settleAll(ctx, d)
	}
	if r, ok := poll(s.inbox); ok {
		return true, false, s.serve(ctx, r)
	}
	return false, false, nil
}

// serve does what an effect asks for. If it finds the run with somebody else, the
// session is over: the other effects must not go on until they find out themselves.
func (s *session) serve(ctx context.Context, r request) error {
	if r.do == nil {
		return s.recordAll(ctx, r)
	}
	err := context.Canceled
	if !s.stale(r.effect) {
		// What is still pending, because the log could not be reached, comes first: it has
		// its sequences.
		if err = s.flushOver(ctx); err == nil {
			err = r.do(ctx)
		}
	}
	r.reply <- err
	if errors.Is(err, runlog.ErrConflict) {
		return err
	}
	return nil
}

// poll takes what is there at once.
func poll[T any](c <-chan T) (v T, ok bool) {
	select {
	case v = <-c:
		return v, true
	default:
		return v, false
	}
}

// dueTimer fires when the machine must be looked at without an effect ending.
func (s *session) dueTimer() (<-chan time.Time, func()) {
	due, ok := s.m.Due()
	if !ok {
		return nil, func() {}
	}
	t := time.NewTimer(due.Sub(s.x.deps.Clock()))
	return t.C, func() { t.Stop() }
}
