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
func (x *Executor) Drain() { x.drainOnce.Do(func() { close(x.drain.begun) }) }

// Cut ends the effects that still run, and releases their runs. Call it after Drain.
func (x *Executor) Cut() { x.cutOnce.Do(func() { close(x.drain.cut) }) }

func (x *Executor) draining() bool {
	select {
	case <-x.drain.begun:
		return true
	default:
		return false
	}
}

// unsentWithin is how long effects that are cut may take to say whether they sent anything.
const unsentWithin = time.Second

// finish waits for the effects that run and records their results. Errors: errReleased when the
// time for them is over and the run was released without them.
func (s *session) finish(ctx context.Context) error {
	if err := s.flushOver(ctx); err != nil { // what was received before
		return err
	}
	for s.live > 0 {
		// Of what is ready at the same time, always the same comes first, and results before the cut.
		if d, ok := poll(s.done); ok {
			if err := s.finished(ctx, d); err != nil {
				return err
			}
			continue
		}
		if _, ok := poll(s.moved); ok {
			if _, err := s.look(ctx); err != nil {
				return err
			}
			continue
		}
		if r, ok := poll(s.inbox); ok {
			if err := s.serve(ctx, r); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.x.drain.cut:
			if err := s.cut(ctx); err != nil {
				return err
			}
			return s.release(ctx)
		case <-s.heartbeat:
			s.hold.extend()
		case <-s.moved:
			if _, err := s.look(ctx); err != nil {
				return err
			}
		case d := <-s.done:
			if err := s.finished(ctx, d); err != nil {
				return err
			}
		case r := <-s.inbox:
			if err := s.serve(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// finished records the end of an effect.
func (s *session) finished(ctx context.Context, d effectDone) error {
	if err := s.settleAll(ctx, d); err != nil {
		return err
	}
	return s.flushOver(ctx)
}

// cut ends the effects that still run, and records which of them have sent nothing: their outcome
// is known.
func (s *session) cut(ctx context.Context) error {
	s.inflight.cancelAll()
	for late := time.After(unsentWithin); s.live > 0; {
		select {
		case d := <-s.done:
			s.live--
			if !s.late(d) && d.result.Unsent {
				s.m.Release(d.effect.NodeID)
			}
		case r := <-s.inbox:
			r.reply <- context.Canceled
		case <-late:
			s.live = 0
		}
	}
	s.stop()
	return s.flushOver(ctx)
}

// release gives the run up and puts it into the queue. It returns errReleased, or why it could not.
func (s *session) release(ctx context.Context) error {
	for {
		f := frame.New(s.run, subject.Wake, s.head, nil).By(frame.Claimed(s.writer, s.epoch, true))
		_, err := s.x.deps.Log.Append(ctx, f, s.head.Pos)
		switch {
		case err == nil:
			s.held.claimed.Store(false)
			s.x.deps.Metrics.Enqueued()
			return errReleased
		case !errors.Is(err, runlog.ErrConflict):
			return err
		}
		if moved, err := s.reload(ctx, nil); err != nil || !moved {
			return errors.Join(err, runlog.ErrConflict)
		}
	}
}
