package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/callguard"
)

// A draining process lets calls in flight end, records their results, and begins no others. An effect
// that waits for its next call ends, and its node is held. The process releases a run that needs
// another call, or whose calls outlast the drain: one frame gives the claim up and enqueues the run.
// Another dispatcher then continues without waiting for the lease.

// errReleased: the run was released to the queue.
var errReleased = errors.New("run released: this dispatcher is draining")

// errQuiet ends the permission of effects to begin calls: the process drains, or the session ends.
// Their nodes continue elsewhere.
var errQuiet = errors.New("this dispatcher begins no further calls for the run")

// drain is the state of a draining process.
type drain struct {
	// begun ends when no effect may begin a call any more; begin ends it.
	begun context.Context //nolint:containedctx // the time in which calls may begin
	begin context.CancelCauseFunc
	// cut is closed when running effects are cancelled.
	cut  chan struct{}
	once *sync.Once
}

func newDrain() drain {
	d := drain{cut: make(chan struct{}), once: &sync.Once{}}
	d.begun, d.begin = context.WithCancelCause(context.Background())
	return d
}

// Drain starts no more effects. Effects that wait for their next call end.
func (e *Executor) Drain() { e.drain.begin(errQuiet) }

// Cut cancels the running effects and releases their runs. Call it after Drain.
func (e *Executor) Cut() { e.drain.once.Do(func() { close(e.drain.cut) }) }

func (e *Executor) draining() bool { return e.drain.begun.Err() != nil }

// callGuard is the permission of a session's effects to begin calls.
func (e *Executor) callGuard(process string) callguard.Guard {
	return callguard.Guard{
		Quiet: e.drain.begun,
		Await: func(ctx context.Context) error { return e.awaitLease(ctx, process) },
	}
}

// unsentTimeout limits the wait for cancelled effects to report whether they sent a request.
const unsentTimeout = time.Second

// endEffects waits for the effects in flight, and records their results, before a session ends
// because of err: cancelled effects would have unknown outcomes. They begin no further calls. A
// session that lost its run leaves it immediately.
func (s *session) endEffects(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil, s.effects.running == 0 && len(s.unflushed.inputs) == 0:
		return err
	case errors.Is(err, runlog.ErrConflict), errors.Is(err, errLeaseLost), errors.Is(err, errReleased), errors.Is(err, errCancelling):
		return err
	}
	s.effects.endCalls()
	return errors.Join(err, s.finishEffects(ctx))
}

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
			s.logCutCalls()
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
	s.applyResults(d)
	return s.flushWithCatchUp(ctx)
}

// cancelEffects cancels the running effects. It records the results that arrive nevertheless, and
// which effects have no call in flight: their outcome is known.
func (s *session) cancelEffects(ctx context.Context) error {
	s.effects.cancelAll()
	for late := time.After(unsentTimeout); s.effects.running > 0; {
		select {
		case d := <-s.effects.port.results:
			s.applyResult(d)
		case r := <-s.effects.port.requests:
			r.done(context.Canceled)
		case <-late:
			s.effects.abandon()
		}
	}
	s.effects.stop()
	return s.flushWithCatchUp(ctx)
}

// logCutCalls logs each call without a result, and what the next dispatcher does about it.
func (s *session) logCutCalls() {
	next := map[workflow.UnknownOutcome]string{
		workflow.OutcomeRetry: "the call is repeated",
		workflow.OutcomeFail:  "the node fails with " + string(fault.OutcomeUnknown),
		workflow.OutcomeAsk:   "a person is asked whether to repeat the call",
	}
	for id, policy := range s.machine.CutCalls() {
		s.exec.deps.Logger.Warn("a call was cut off by the shutdown: its outcome is unknown",
			"run_id", s.claim.run.RunID, "node_id", id, "at_next_start", next[policy])
	}
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
