package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// A process that drains lets the effects that it has begun end, records their results, and begins
// no others. A run that needs another effect, or whose effects take longer than the drain, is
// released: one frame gives it up and puts it into the queue, so that another dispatcher continues
// without waiting for a lease.

// errReleased says that the run was released to the queue.
var errReleased = errors.New("run released: this dispatcher is draining")

// drain is the state of a draining process.
type drain struct {
	// begun is closed when no effect may begin any more, cut when no effect is waited for any more.
	begun, cut chan struct{}
}

// Drain begins no effects from now on.
func (e *Executor) Drain() { e.drainOnce.Do(func() { close(e.drain.begun) }) }

// Cut ends the effects that still run, and releases their runs. Call it after Drain.
func (e *Executor) Cut() { e.cutOnce.Do(func() { close(e.drain.cut) }) }

func (e *Executor) draining() bool {
	select {
	case <-e.drain.begun:
		return true
	default:
		return false
	}
}

// unsentTimeout is how long effects that are cut may take to say whether they sent anything.
const unsentTimeout = time.Second

// finishEffects waits for the effects that run and records their results. Errors: errReleased when the
// time for them is over and the run was released without them.
func (s *session) finishEffects(ctx context.Context) error {
	if err := s.flushWithCatchUp(ctx); err != nil { // what was received before
		return err
	}
	for s.running > 0 {
		// Of what is ready at the same time, always the same comes first, and results before the cut.
		if d, ok := tryReceive(s.results); ok {
			if err := s.recordResult(ctx, d); err != nil {
				return err
			}
			continue
		}
		if _, ok := tryReceive(s.logMoved); ok {
			if _, err := s.readIfMoved(ctx); err != nil {
				return err
			}
			continue
		}
		if r, ok := tryReceive(s.requests); ok {
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
		case <-s.heartbeat:
			s.delivery.extend()
		case <-s.logMoved:
			if _, err := s.readIfMoved(ctx); err != nil {
				return err
			}
		case d := <-s.results:
			if err := s.recordResult(ctx, d); err != nil {
				return err
			}
		case r := <-s.requests:
			if err := s.serveRequest(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordResult records the end of an effect.
func (s *session) recordResult(ctx context.Context, d effectResult) error {
	if err := s.applyResults(ctx, d); err != nil {
		return err
	}
	return s.flushWithCatchUp(ctx)
}

// cancelEffects ends the effects that still run, and records which of them have sent nothing: their outcome
// is known.
func (s *session) cancelEffects(ctx context.Context) error {
	s.inflight.cancelAll()
	for late := time.After(unsentTimeout); s.running > 0; {
		select {
		case d := <-s.results:
			s.running--
			if !s.endInflight(d) && d.result.Unsent {
				s.machine.ReleaseEffects(d.effect.NodeID)
			}
		case r := <-s.requests:
			r.reply <- context.Canceled
		case <-late:
			s.running = 0
		}
	}
	s.stopEffects()
	return s.flushWithCatchUp(ctx)
}

// releaseRun gives the run up and puts it into the queue. It returns errReleased, or why it could not.
func (s *session) releaseRun(ctx context.Context) error {
	for {
		f := frame.New(s.run, subject.Wake, s.head, nil).By(frame.Claimed(s.writer, s.epoch, true))
		_, err := s.exec.deps.Log.Append(ctx, f, s.head.Pos)
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
