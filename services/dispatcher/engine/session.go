package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// session executes one run. While it lasts, it is the only writer of the run's log.
type session struct {
	exec     *Executor
	delivery *delivery
	active   *activeRun
	machine  *machine.Machine
	// claim is the ownership of the run, and the end of its log.
	claim claim
	// effects are the calls in flight. places are those of calls that start next.
	effects inflight
	places  places
	// unflushed are effect results applied but not yet appended.
	unflushed unflushed
	// interrupted is why effects have no result; nil for none. The session ends once its other effects
	// have ended.
	interrupted error
	// impatient means that a dependency was unreachable for longer than the session waits.
	impatient bool
	snapshots sessionSnapshots
	spans     *spans
}

func newSession(e *Executor, d *delivery, h *activeRun, r subject.Run, head frame.Head, m *machine.Machine) *session {
	process := cmp.Or(d.process, e.deps.Leases.Process())
	return &session{
		exec:      e,
		delivery:  d,
		active:    h,
		machine:   m,
		claim:     newClaim(r, process, e.writerOf(process), head),
		effects:   inflight{guard: e.callGuard(process)},
		places:    places{},
		snapshots: sessionSnapshots{keeper: e.deps.Snapshots},
	}
}

// runMachine advances the machine until the run ends (nil), waits (nil), or cannot continue in this
// process (an error; the run is delivered again).
func (s *session) runMachine(ctx context.Context) error {
	s.delivery.extendIfDue()
	stop := s.delivery.startHeartbeat()
	defer stop()
	return s.stopCause(ctx, s.endEffects(ctx, s.takeTurns(ctx)))
}

// takeTurns takes the steps of the run and waits for its effects, in turns, as runMachine does.
func (s *session) takeTurns(ctx context.Context) error {
	for {
		effects, err := s.takeSteps(ctx)
		if err != nil {
			return err
		}
		if err := s.startEffects(ctx, effects); err != nil {
			return err
		}
		switch status := s.machine.State().Status; {
		case status.Terminal():
			return nil
		case status == wire.StatusCancelling:
			return errCancelling
		case s.machine.MustAppend():
			if _, ok := tryReceive(s.delivery.heartbeat); ok {
				s.delivery.extend()
			}
		case s.effects.running == 0:
			if suspended, err := s.suspendRun(ctx); suspended || err != nil {
				return err
			}
		default:
			if err := s.waitForWork(ctx); err != nil {
				return err
			}
		}
	}
}

// takeSteps takes all steps that are possible now and returns the effects to start. A draining
// process records the results of running effects first.
func (s *session) takeSteps(ctx context.Context) ([]machine.Effect, error) {
	draining := s.exec.draining()
	if draining {
		if err := s.finishEffects(ctx); err != nil {
			return nil, err
		}
	}
	if s.interrupted != nil {
		return nil, s.interrupted
	}
	return s.advanceMachine(ctx, draining)
}

// advanceMachine takes all possible steps and appends their events in one frame. The frame claims
// the run, or gives it up if the run has nothing more to do in this process. If the log then has
// other events, the machine continues from the log. A draining process releases a run that needs an
// effect: errReleased.
func (s *session) advanceMachine(ctx context.Context, draining bool) ([]machine.Effect, error) {
	for {
		effects, planned, err := s.takeAdmittedSteps(ctx, draining)
		if err != nil {
			return nil, err
		}
		idle := len(effects) == 0 && s.effects.running == 0
		release := idle && !s.machine.MustAppend() && !s.machine.State().Status.Terminal()
		mustClaim := len(effects) > 0 && !s.claim.isHeld()
		s.unflushed.starts = len(effects) > 0
		changed, err := s.flushPending(ctx, s.appendAsync, release, mustClaim)
		switch {
		case errors.Is(err, runlog.ErrConflict):
			if err := s.catchUpWithLog(ctx, planned); err != nil {
				return nil, err
			}
		case runlog.IsPermanent(err) && !s.unflushed.overflowed:
			if err := s.endOversizedRun(ctx, planned, err); err != nil {
				return nil, err
			}
		case err != nil:
			s.releaseEffects(planned...)
			return nil, err
		case !changed:
			return effects, nil
		default:
			if _, err := s.reloadState(ctx, planned); err != nil {
				return nil, err
			}
		}
	}
}

// startEffects cancels the effects that the run no longer waits for, and starts others. Before, the
// log contains the session's claim and their start, fsynced unless the effects only call models. Each
// effect checks again at each call that it may begin; see callGuard.
func (s *session) startEffects(ctx context.Context, effects []machine.Effect) error {
	s.effects.cancelDropped(s.machine.IsCurrent)
	if !s.exec.onlyCallModels(effects) {
		if err := s.untilReachable(ctx, func() error { return s.syncLog(ctx) }); err != nil {
			s.releaseEffects(effects...)
			return err
		}
	}
	for _, e := range effects {
		s.startEffect(ctx, e)
	}
	return nil
}

// suspendRun gives up the claim on a waiting run, unless the last frame did, and schedules the
// wake. suspended is false if another writer appended and the run has more to do.
func (s *session) suspendRun(ctx context.Context) (suspended bool, err error) {
	if s.claim.head.Owner != "" {
		f := s.claim.releaseFrame(subject.Step)
		f.Pos, err = s.exec.deps.Log.Append(ctx, f, s.claim.head.Pos)
		if errors.Is(err, runlog.ErrConflict) {
			return false, s.catchUpWithLog(ctx, nil)
		}
		if err != nil {
			return false, err
		}
		s.active.claimed.Store(false)
		s.claim.head = headAfter(s.claim.head, f)
	}
	if err := s.syncLog(ctx); err != nil {
		return false, err
	}
	s.scheduleWake()
	return true, nil
}

// scheduleWake registers the run's next due time. The delivery may then be acknowledged, because
// the wake enqueues the run again.
func (s *session) scheduleWake() {
	if due, ok := s.machine.Due(); ok {
		s.exec.deps.Wait(s.claim.run, s.claim.head, due)
	}
}

// dueTimer fires when the machine must advance without the end of an effect.
func (s *session) dueTimer() (<-chan time.Time, func()) {
	due, ok := s.machine.Due()
	if !ok {
		return nil, func() {}
	}
	t := time.NewTimer(due.Sub(s.exec.deps.Clock()))
	return t.C, func() { t.Stop() }
}

// stopCause distinguishes the loss of the run from other reasons to stop.
func (s *session) stopCause(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(err, errReleased):
		return err
	case errors.Is(cause, errLeaseLost):
		return cause
	case errors.Is(err, runlog.ErrConflict), errors.Is(cause, errAborted):
		return errLost
	default:
		return err
	}
}
