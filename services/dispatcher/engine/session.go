package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// session executes one run. While it lasts, it is the only writer of the run's log.
type session struct {
	exec     *Executor
	delivery *delivery
	active   *activeRun
	run      subject.Run
	head     frame.Head
	machine  *machine.Machine
	// writer identifies the frames of this session. They claim the run for process, in an epoch of
	// the session; see frame.Ownership.
	writer  string
	process string
	epoch   uint64
	spans   *spans
	// sideEffectPending reports that pending events complete an effect that must not run twice.
	sideEffectPending bool
	// unflushed are effect results that the machine applied and the log does not have yet. They are
	// applied again after a reload.
	unflushed []func()
	// overflowed is set after the run was ended because its log rejects its next events.
	overflowed bool
	// logMoved signals that another writer appended to the log.
	logMoved <-chan struct{}
	// heartbeat fires when the delivery must be extended.
	heartbeat <-chan time.Time
	// onFirstAppend is called after each append. The first is the run's first step in this process.
	onFirstAppend func()

	// Effects send requests and results to the writer through these channels.
	requests chan request
	results  chan effectResult
	ctx      context.Context //nolint:containedctx // the effects' lifetime, ended by stop
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	running  int
	// handoff passes an effect to the idle goroutine. idle is full while there is one.
	handoff chan func()
	idle    chan struct{}
	// inflight are the running effects.
	inflight inflight
	// snapshotAt is the number of events at the last snapshot offer.
	snapshotAt int
}

// request is sent by an effect and served by the writer: either call runs, or drafts are appended.
type request struct {
	effect machine.Effect
	call   func(ctx context.Context) error
	drafts []wire.Draft
	reply  chan error
}

type effectResult struct {
	effect machine.Effect
	result model.Result
}

func newSession(e *Executor, d *delivery, r subject.Run, head frame.Head, m *machine.Machine) *session {
	process := cmp.Or(d.process, e.deps.Leases.Process())
	return &session{
		exec: e, delivery: d, run: r, head: head, machine: m,
		process: process, writer: e.writerOf(process), epoch: head.Epoch + 1, inflight: newInflight(),
	}
}

// ownsRun reports that the log contains this session's claim.
func (s *session) ownsRun() bool { return s.head.Owner == s.process && s.head.Epoch == s.epoch }

// stopEffects cancels the session's effects and waits for them.
func (s *session) stopEffects() {
	if s.cancel != nil {
		s.cancel()
		s.wg.Wait()
	}
}

// runMachine advances the machine until the run ends (nil), waits (nil), or cannot continue in this
// process (an error; the run is delivered again).
func (s *session) runMachine(ctx context.Context) error {
	s.delivery.extendIfDue()
	heartbeat := time.NewTicker(s.delivery.extendInterval())
	defer heartbeat.Stop()
	s.heartbeat = heartbeat.C
	for {
		draining := s.exec.draining()
		if draining {
			if err := s.finishEffects(ctx); err != nil {
				return s.stopCause(ctx, err)
			}
		}
		effects, err := s.advanceMachine(ctx, draining)
		if err != nil {
			return s.stopCause(ctx, err)
		}
		s.inflight.cancelDropped(s.machine)
		if err := s.awaitEffectsAllowed(ctx, effects); err != nil {
			return s.stopCause(ctx, err)
		}
		for _, e := range effects {
			s.startEffect(ctx, e)
		}
		switch status := s.machine.State().Status; {
		case status.Terminal():
			return nil
		case status == wire.StatusCancelling:
			return errCancelling
		}
		if s.machine.MustAppend() {
			if _, ok := tryReceive(s.heartbeat); ok {
				s.delivery.extend()
			}
			continue
		}
		if s.running == 0 {
			if moved, err := s.suspendRun(ctx); err != nil || !moved {
				return s.stopCause(ctx, err)
			}
			continue
		}
		if err := s.waitForWork(ctx); err != nil {
			return s.stopCause(ctx, s.finishIfUnreachable(ctx, err))
		}
	}
}

// finishIfUnreachable waits for the other effects and records their results before a session ends
// because a dependency is unreachable. Cancelled effects would have unknown outcomes.
func (s *session) finishIfUnreachable(ctx context.Context, err error) error {
	if !isUnreachable(err) || errors.Is(err, runlog.ErrConflict) || s.running == 0 {
		return err
	}
	return errors.Join(err, s.finishEffects(ctx))
}

// awaitEffectsAllowed returns once effects may start. The log contains the session's claim, the
// process's lease is valid, and the claim is fsynced unless the effects only call models.
func (s *session) awaitEffectsAllowed(ctx context.Context, effects []machine.Effect) error {
	if !s.onlyCallModels(effects) {
		if err := s.syncLog(ctx); err != nil {
			return err
		}
	}
	return s.awaitLease(ctx, effects)
}

// awaitLease returns once the process's lease is valid, if there are effects to start. Errors:
// errLeaseLost, and the cause of ctx.
func (s *session) awaitLease(ctx context.Context, effects []machine.Effect) error {
	if len(effects) == 0 {
		return nil
	}
	err := s.exec.deps.Leases.Await(ctx, s.process)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errLeaseLost, err)
}

// suspendRun ends the session of a waiting run. It gives up the claim, unless the last frame did,
// and schedules the wake. moved reports that another writer appended and the run has more to do.
func (s *session) suspendRun(ctx context.Context) (moved bool, err error) {
	if s.head.Owner != "" {
		f := frame.New(s.run, subject.Step, s.head, nil).By(frame.Claimed(s.writer, s.epoch, true))
		pos, err := s.exec.deps.Log.Append(ctx, f, s.head.Pos)
		if errors.Is(err, runlog.ErrConflict) {
			return true, s.catchUpWithLog(ctx, nil)
		}
		if err != nil {
			return false, err
		}
		s.active.claimed.Store(false)
		f.Pos = pos
		after := s.head.After(f)
		s.head = f.Head()
		s.head.Ownership = after
	}
	if err := s.syncLog(ctx); err != nil {
		return false, err
	}
	s.scheduleWake()
	return false, nil
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

// advanceMachine takes all possible steps and appends their events in one frame. The frame claims
// the run, or gives it up if the run has nothing more to do in this process. If the log then has
// other events, the machine continues from the log. A draining process releases a run that needs an
// effect: errReleased.
func (s *session) advanceMachine(ctx context.Context, draining bool) ([]machine.Effect, error) {
	for {
		effects := s.machine.Advance(s.exec.deps.Clock())
		if draining && len(effects) > 0 {
			return nil, s.releaseRun(ctx) // the pending events are dropped: the next dispatcher derives the same ones
		}
		if err := s.awaitLease(ctx, effects); err != nil { // checked before the log records their start
			return nil, err
		}
		idle := len(effects) == 0 && s.running == 0 && !s.machine.MustAppend() && !s.machine.State().Status.Terminal()
		changed, err := s.flushPending(ctx, s.appendAsync, idle, len(effects) > 0 && !s.ownsRun())
		switch {
		case errors.Is(err, runlog.ErrConflict):
			if err := s.catchUpWithLog(ctx, effects); err != nil {
				return nil, err
			}
		case runlog.IsPermanent(err) && !s.overflowed:
			if err := s.endOversizedRun(ctx, effects, err); err != nil {
				return nil, err
			}
		case err != nil || !changed:
			return effects, err
		default:
			if _, err := s.reloadState(ctx, effects); err != nil {
				return nil, err
			}
		}
	}
}

// endOversizedRun ends a run whose next events exceed a limit of its log. A redelivery would
// produce the same events.
func (s *session) endOversizedRun(ctx context.Context, notBegun []machine.Effect, cause error) error {
	if _, err := s.reloadState(ctx, notBegun); err != nil {
		return err
	}
	s.exec.deps.Logger.Warn("run ended: its next events exceed a limit of the log", "run_id", s.run.RunID, "error", cause)
	s.unflushed, s.overflowed = nil, true
	s.machine.EndOversized(s.exec.deps.Clock())
	return nil
}

// flushPending appends the pending events in a frame that claims the run, or gives it up with
// release. force appends a frame even without pending events. changed reports that the redactor
// changed events.
func (s *session) flushPending(ctx context.Context, to appendFunc, release, always bool) (changed bool, err error) {
	start := s.exec.deps.Clock()
	e := entry{writer: frame.Claimed(s.writer, s.epoch, release), run: s.run, head: s.head, append: to, force: always}
	a, err := s.exec.append(ctx, e, s.machine)
	waits := retry.Policy{Base: firstPause, Max: maxPause, Total: s.exec.cfg.HoldResults}.Start()
	for err != nil && s.wouldLoseResults(err) && waits.Wait(ctx) {
		s.delivery.extendIfDue()
		a, err = s.exec.append(ctx, e, s.machine) // the same frame: the log stores it once
	}
	if err != nil {
		return false, err
	}
	s.onFirstAppend()
	s.head, s.unflushed, s.sideEffectPending = a.head, nil, false
	s.active.claimed.Store(s.ownsRun())
	s.offerSnapshot()
	s.spans.exportAppend(a.events, start)
	return a.changed, nil
}

// applyInput applies an input to the machine, and again after a reload if it is not appended by
// then.
func (s *session) applyInput(do func()) {
	s.unflushed = append(s.unflushed, do)
	do()
}

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
	for _, do := range s.unflushed {
		do()
	}
	return nil
}

// reloadState replaces the machine's state by that of the log, without unappended events. moved
// reports frames of another writer. The session ends unless it can continue after them.
func (s *session) reloadState(ctx context.Context, notBegun []machine.Effect) (moved bool, err error) {
	defer s.delivery.keepExtended()()
	folded, ferr := s.rereadLog(ctx)
	if ferr != nil && len(folded.Frames) == 0 {
		return false, ferr
	}
	var news []wire.Event
	for _, f := range folded.Frames {
		if f.Pos <= s.head.Pos {
			continue
		}
		if !maySessionAdopt(f) {
			s.exec.countConflict(f)
			return false, errLost
		}
		events, err := f.Events()
		if err != nil {
			return false, err
		}
		news = append(news, events...)
	}
	st, head, err := s.exec.resumableState(ctx, folded, ferr)
	if err != nil {
		return false, err
	}
	if moved = head.Pos != s.head.Pos; moved && s.machine.IsReplay() { // its history is ahead of the log
		return false, errLost
	}
	s.head = head
	s.machine.ReplaceState(st, notBegun)
	s.spans.apply(news)
	return moved, nil
}

// readIfMoved catches up with the log if another writer appended.
func (s *session) readIfMoved(ctx context.Context) (moved bool, err error) {
	last, err := s.exec.deps.Log.Last(ctx, s.run)
	if err != nil || last.Pos == s.head.Pos {
		return false, nil // the next append detects it
	}
	return true, s.catchUpWithLog(ctx, nil)
}

// scheduleWake registers the run's next due time. The delivery may then be acknowledged, because
// the wake enqueues the run again.
func (s *session) scheduleWake() {
	if due, ok := s.machine.Due(); ok {
		s.exec.deps.Wait(s.run, s.head, due)
	}
}

// applyResult applies the result of an effect to the machine. The next advance appends it.
func (s *session) applyResult(d effectResult) error {
	s.running--
	if s.endInflight(d) {
		return nil
	}
	switch err := d.result.Interrupted; {
	case runlog.IsPermanent(err): // permanent: a redelivery would fail, too
		s.exec.deps.Logger.Warn("node failed: its events exceed a limit of the run's log", "run_id", s.run.RunID, "node_id", d.effect.NodeID, "error", err)
		d.result.Interrupted, d.result.Err = nil, machine.EventsTooLarge()
	case errors.Is(err, errRefused):
		s.exec.deps.Logger.Error("node failed: the acceptor rejected the request", "run_id", s.run.RunID, "node_id", d.effect.NodeID, "error", err)
		d.result.Interrupted, d.result.Err = nil, &wire.NodeError{Code: string(fault.InternalError), Message: "the host's acceptor refuses what the node hands in; its operator finds why in the host's log"}
	case err != nil:
		if d.result.Unsent {
			s.machine.ReleaseEffects(d.effect.NodeID)
		}
		return fmt.Errorf("node %s of run %s: %w", d.effect.NodeID, s.run.RunID, d.result.Interrupted)
	}
	s.sideEffectPending = s.sideEffectPending || !s.onlyCallsModel(d.effect)
	now := s.exec.deps.Clock()
	s.applyInput(func() {
		s.machine.Emit(now, d.result.Drafts...)
		if d.result.Waits {
			s.machine.Suspend(now, d.effect.NodeID)
			return
		}
		if d.result.Err != nil {
			s.machine.FailNode(now, d.effect.NodeID, d.result.Err, wire.Trusted.Meet(d.effect.Trust).Meet(d.result.Trust))
			return
		}
		if d.effect.Spawn != nil {
			s.machine.RecordDispatch(now, d.effect.NodeID, *d.effect.Spawn)
			return
		}
		s.machine.Complete(now, d.effect.NodeID, d.result.Output, d.result.Trust)
	})
	return nil
}

// journal gives an effect access to the run's log. Every call is served by the session's writer.
type journal struct {
	s      *session
	effect machine.Effect
}

// Record appends drafts in one frame; see model.Journal.
func (j journal) Record(ctx context.Context, drafts ...wire.Draft) error {
	return j.sendRequest(ctx, request{drafts: drafts})
}

// acceptEnvelope calls the acceptor with the current head, again after each conflict. An acceptor
// that recorded the outcome before returns it for any head, so the session must first read the
// frames of other writers.
func (j journal) acceptEnvelope(ctx context.Context, req model.AcceptRequest) (Accepted, error) {
	for {
		a, err := j.s.exec.deps.Acceptor.Accept(ctx, j.s.run, j.s.head, j.s.machine.State().Record.TrustBoundary, req)
		a.Head.Ownership = j.s.head.Ownership // the acceptor leaves the ownership unchanged
		if err == nil && j.s.directlyFollows(a) || err != nil && !errors.Is(err, runlog.ErrConflict) {
			return a, err
		}
		if err := j.s.catchUpWithLog(ctx, nil); err != nil {
			return Accepted{}, err
		}
	}
}

// directlyFollows reports that the log has no events between the session's head and the accepted
// ones.
func (s *session) directlyFollows(a Accepted) bool {
	if a.Head.Pos == s.head.Pos {
		return true
	}
	events := a.allEvents()
	return len(events) > 0 && events[0].Sequence == s.head.Next && a.Head.Next == s.head.Next+len(events)
}

func (j journal) sendRequest(ctx context.Context, r request) error {
	r.effect, r.reply = j.effect, make(chan error, 1)
	select {
	case j.s.requests <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-j.s.ctx.Done():
		return context.Canceled
	}
	select {
	case err := <-r.reply:
		return err
	case <-j.s.ctx.Done():
		return context.Canceled
	}
}
