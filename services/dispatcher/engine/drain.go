package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
)

// A draining process lets running effects end, records their results, and starts no others. It
// releases a run that needs another effect, or whose effects outlast the drain: one frame gives the
// claim up and enqueues the run. Another dispatcher then continues without waiting for the lease.

// errReleased: the run was released to the queue.
var errReleased = errors.New("run released: this dispatcher is draining")

// drain is the state of a draining process.
type drain struct {
	// begun is closed when no effect may start any more, cut when running effects are cancelled.
	begun, cut chan struct{}
}

// Drain starts no more effects.
func (e *Executor) Drain() { e.drainOnce.Do(func() { close(e.drain.begun) }) }

// Cut cancels the running effects and releases their runs. Call it after Drain.
func (e *Executor) Cut() { e.cutOnce.Do(func() { close(e.drain.cut) }) }

func (e *Executor) draining() bool {
	select {
	case <-e.drain.begun:
		return true
	default:
		return false
	}
}

// unsentTimeout limits the wait for cancelled effects to report whether they sent a request.
const unsentTimeout = time.Second

// finishEffects waits for the running effects and records their results. Errors: errReleased if the
// drain's time is over and the run was released without them.
func (s *session) finishEffects(ctx context.Context) error {
	if err := s.flushWithCatchUp(ctx); err != nil { // results received before the drain
		return err
	}
	for s.effects.running > 0 {
		// With several ready channels the order is fixed, and results come before the cut.
		if d, ok := tryReceive(s.effects.port.results); ok {
			if err := s.recordResult(ctx, d); err != nil {
				return err
			}
			continue
		}
		if _, ok := tryReceive(s.active.logMoved); ok {
			if _, err := s.readIfMoved(ctx); err != nil {
				return err
			}
			continue
		}
		if r, ok := tryReceive(s.effects.port.requests); ok {
			if err := s.serveRequest(ctx, r); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.exec.drain.cut:
			if err := s.cancelEffects(ctx); err != nil {
				return err
			}
			return s.releaseRun(ctx)
		case <-s.delivery.heartbeat:
			s.delivery.extend()
		case <-s.active.logMoved:
			if _, err := s.readIfMoved(ctx); err != nil {
				return err
			}
		case d := <-s.effects.port.results:
			if err := s.recordResult(ctx, d); err != nil {
				return err
			}
		case r := <-s.effects.port.requests:
			if err := s.serveRequest(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordResult appends the result of an effect.
func (s *session) recordResult(ctx context.Context, d effectResult) error {
	if err := s.applyResults(ctx, d); err != nil {
		return err
	}
	return s.flushWithCatchUp(ctx)
}

// cancelEffects cancels the running effects and records which of them sent no request: their
// outcome is known.
func (s *session) cancelEffects(ctx context.Context) error {
	s.effects.cancelAll()
	for late := time.After(unsentTimeout); s.effects.running > 0; {
		select {
		case d := <-s.effects.port.results:
			s.effects.received(d.effect)
			if s.machine.IsCurrent(d.effect) && d.result.Unsent {
				s.machine.ReleaseEffects(d.effect.NodeID)
			}
		case r := <-s.effects.port.requests:
			r.done(context.Canceled)
		case <-late:
			s.effects.abandon()
		}
	}
	s.effects.stop()
	return s.flushWithCatchUp(ctx)
}

// releaseRun gives the claim up and enqueues the run. It returns errReleased, or the error of the
// append.
func (s *session) releaseRun(ctx context.Context) error {
	for {
		_, err := s.exec.deps.Log.Append(ctx, s.claim.releaseFrame(subject.Wake), s.claim.head.Pos)
		switch {
		case err == nil:
			s.active.claimed.Store(false)
			s.exec.deps.Metrics.Enqueued()
			return errReleased
		case !errors.Is(err, runlog.ErrConflict):
			return err
		}
		if moved, err := s.reloadState(ctx, nil); err != nil || !moved {
			return errors.Join(err, runlog.ErrConflict)
		}
	}
}
