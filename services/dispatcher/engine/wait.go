package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// waitForWork serves the effects until one ends, an instant is due, the log has moved or the
// process drains. With several ready channels the order is fixed. Extensions come before busy
// effects, a lost run is left before more work is done, and the same inputs lead to the same log.
func (s *session) waitForWork(ctx context.Context) error {
	due, stopDue := s.dueTimer()
	defer stopDue()
	for {
		if _, ok := tryReceive(s.delivery.heartbeat); ok {
			s.delivery.extend()
		}
		switch handled, done, err := s.handleReady(ctx, due); {
		case done || err != nil:
			return err
		case handled:
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.delivery.heartbeat:
			s.delivery.extend()
		case <-s.exec.drain.begun.Done():
			return nil
		case <-s.active.logMoved:
			_, err := s.readIfMoved(ctx)
			return err
		case <-due:
			return nil
		case d := <-s.effects.port.results:
			s.applyResults(d)
			return nil
		case r := <-s.effects.port.requests:
			if err := s.serveRequest(ctx, r); err != nil {
				return err
			}
		}
	}
}

// handleReady handles one ready input, if there is one. done reports that the wait is over.
func (s *session) handleReady(ctx context.Context, due <-chan time.Time) (handled, done bool, err error) {
	if ctx.Err() != nil {
		return true, true, context.Cause(ctx)
	}
	if _, ok := tryReceive(s.active.logMoved); ok {
		_, err := s.readIfMoved(ctx)
		return true, true, err
	}
	if _, ok := tryReceive(due); ok {
		return true, true, nil
	}
	if d, ok := tryReceive(s.effects.port.results); ok {
		s.applyResults(d)
		return true, true, nil
	}
	if r, ok := tryReceive(s.effects.port.requests); ok {
		return true, false, s.serveRequest(ctx, r)
	}
	return false, false, nil
}

// serveRequest serves the request of an effect. A conflict ends the session: its other effects must
// not continue.
func (s *session) serveRequest(ctx context.Context, r request) error {
	if r.accept == nil {
		return s.appendDrafts(ctx, r)
	}
	var a answer
	if a.err = context.Canceled; s.machine.IsCurrent(r.effect) {
		// Events that are still pending after an unreachable log come first: they have the next
		// sequences.
		if a.err = s.flushWithCatchUp(ctx); a.err == nil {
			a.outcome, a.err = s.acceptEnvelope(ctx, r.effect, *r.accept)
		}
	}
	r.reply <- a
	if errors.Is(a.err, runlog.ErrConflict) {
		return a.err
	}
	return nil
}

// tryReceive receives a value if one is ready.
func tryReceive[T any](c <-chan T) (v T, ok bool) {
	select {
	case v = <-c:
		return v, true
	default:
		return v, false
	}
}
