package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// session is one run in execution: the only writer of its log while it lasts.
type session struct {
	x    *Executor
	hold *hold
	held *held
	run  subject.Run
	head frame.Head
	m    *machine.Machine
	// writer marks this session's frames, which claim the run for process in an epoch of its
	// own; see frame.Ownership.
	writer  string
	process string
	epoch   uint64
	spans   *spans
	// acted tells that what is pending holds the end of an effect that somebody would notice if it were
	// carried out again.
	acted bool
	// given is what effects gave the machine that is not appended yet.
	given []func()
	// overflowed is set once the run was ended for what its log does not take.
	overflowed bool
	// moved signals that others appended to the log.
	moved <-chan struct{}
	// heartbeat fires when the delivery must be extended.
	heartbeat <-chan time.Time
	// begun is told of each append: the first is the run's first step here.
	begun func()

	// Effects reach the writer through these.
	inbox  chan request
	done   chan effectDone
	ctx    context.Context //nolint:containedctx // the effects' lifetime, ended by stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	live   int
	// spare hands an effect to the goroutine that waits for one; waits is full while there is one.
	spare chan func()
	waits chan struct{}
	// inflight are the effects that run.
	inflight inflight
	// offered is the sequence up to which a snapshot of the run was offered.
	offered int
}

// request is a call of an effect that the writer serves: something to do, or drafts to
// append.
type request struct {
	effect machine.Effect
	do     func(ctx context.Context) error
	drafts []wire.Draft
	reply  chan error
}

type effectDone struct {
	effect machine.Effect
	result model.Result
}

func newSession(x *Executor, h *hold, r subject.Run, head frame.Head, m *machine.Machine) *session {
	process := cmp.Or(h.process, x.deps.Leases.Process())
	return &session{x: x, hold: h, run: r, head: head, m: m, process: process, writer: x.writerOf(process), epoch: head.Epoch + 1, inflight: newInflight()}
}

// owns reports that the log has this session's claim.
func (s *session) owns() bool { return s.head.Owner == s.process && s.head.Epoch == s.epoch }

// stop ends the session's effects and waits for them.
func (s *session) stop() {
	if s.cancel != nil {
		s.cancel()
		s.wg.Wait()
	}
}

// drive runs the machine until the run has ended (nil), sleeps (nil), or cannot
// go on here (an error; the run is handed out again).
func (s *session) drive(ctx context.Context) error {
	s.hold.refresh()
	heartbeat := time.NewTicker(s.hold.every())
	defer heartbeat.Stop()
	s.heartbeat = heartbeat.C
	for {
		draining := s.x.draining()
		if draining {
			if err := s.finish(ctx); err != nil {
				return s.lostOr(ctx, err)
			}
		}
		effects, err := s.advance(ctx, draining)
		if err != nil {
			return s.lostOr(ctx, err)
		}
		s.inflight.drop(s.m)
		if err := s.prepare(ctx, effects); err != nil {
			return s.lostOr(ctx, err)
		}
		for _, e := range effects {
			s.begin(ctx, e)
		}
		switch status := s.m.State().Status; {
		case status.Terminal():
			return nil
		case status == wire.StatusCancelling:
			return errCancelling
		}
		if s.m.More() {
			if _, ok := poll(s.heartbeat); ok {
				s.hold.extend()
			}
			continue
		}
		if s.live == 0 {
			if moved, err := s.rest(ctx); err != nil || !moved {
				return s.lostOr(ctx, err)
			}
			continue
		}
		if err := s.wait(ctx); err != nil {
			return s.lostOr(ctx, s.outlast(ctx, err))
		}
	}
}

// outlast lets the other effects end, and records their results, before a session ends because a
// part of the host could not be reached: to cut them would leave their outcomes unknown.
func (s *session) outlast(ctx context.Context, err error) error {
	if !unreachable(err) || errors.Is(err, runlog.ErrConflict) || s.live == 0 {
		return err
	}
	return errors.Join(err, s.finish(ctx))
}

// prepare returns once effects may begin: the log has the session's claim, on the disk unless they
// only call models, and the process's lease is valid.
func (s *session) prepare(ctx context.Context, effects []machine.Effect) error {
	if !s.onlyAsk(effects) {
		if err := s.keep(ctx); err != nil {
			return err
		}
	}
	return s.entitledTo(ctx, effects)
}

// entitledTo returns once the process's lease is valid, if there are effects to begin. Errors:
// errLeaseLost, and the cause of ctx.
func (s *session) entitledTo(ctx context.Context, effects []machine.Effect) error {
	if len(effects) == 0 {
		return nil
	}
	err := s.x.deps.Leases.Await(ctx, s.process)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errLeaseLost, err)
}

// rest ends a session whose run sleeps: the run is given up, unless its last frame did that, and
// its timer is watched. moved reports that the run has more to do, because its log has moved on.
func (s *session) rest(ctx context.Context) (moved bool, err error) {
	if s.head.Owner != "" {
		f := frame.New(s.run, subject.Step, s.head, nil).By(frame.Claimed(s.writer, s.epoch, true))
		pos, err := s.x.deps.Log.Append(ctx, f, s.head.Pos)
		if errors.Is(err, runlog.ErrConflict) {
			return true, s.catchUp(ctx, nil)
		}
		if err != nil {
			return false, err
		}
		s.held.claimed.Store(false)
		f.Pos = pos
		after := s.head.After(f)
		s.head = f.Head()
		s.head.Ownership = after
	}
	if err := s.keep(ctx); err != nil {
		return false, err
	}
	s.sleep()
	return false, nil
}

// lostOr tells the loss of the run from other reasons to stop.
func (s *session) lostOr(ctx context.Context, err error) error {
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

// advance takes all steps that are possible now and appends them. When that is not what
// comes to stand in the log, the machine goes on from what does. The frame claims the run, or gives
// it up when the run has nothing more to do here. While draining, a run that needs an effect is
// released instead: errReleased.
func (s *session) advance(ctx context.Context, draining bool) ([]machine.Effect, error) {
	for {
		effects := s.m.Advance(s.x.deps.Clock())
		if draining && len(effects) > 0 {
			return nil, s.release(ctx) // without what the machine holds: the next dispatcher comes to the same
		}
		if err := s.entitledTo(ctx, effects); err != nil { // before the log says that they have begun
			return nil, err
		}
		idle := len(effects) == 0 && s.live == 0 && !s.m.More() && !s.m.State().Status.Terminal()
		changed, err := s.flush(ctx, s.early, idle, len(effects) > 0 && !s.owns())
		switch {
		case errors.Is(err, runlog.ErrConflict):
			if err := s.catchUp(ctx, effects); err != nil {
				return nil, err
			}
		case create.NeverTaken(err) && !s.overflowed:
			if err := s.overflow(ctx, effects, err); err != nil {
				return nil, err
			}
		case err != nil || !changed:
			return effects, err
		default:
			if _, err := s.reload(ctx, effects); err != nil {
				return nil, err
			}
		}
	}
}

// overflow ends a run that would record what its log does not take: to hand it out again
// would come to the same.
func (s *session) overflow(ctx context.Context, notBegun []machine.Effect, cause error) error {
	if _, err := s.reload(ctx, notBegun); err != nil {
		return err
	}
	s.x.deps.Logger.Warn("run ended: its log does not take what comes next", "run_id", s.run.RunID, "error", cause)
	s.given, s.overflowed = nil, true
	s.m.Overflow(s.x.deps.Clock())
	return nil
}

// flush appends what is pending, as a frame that claims the run, or that gives it up with release;
// always: also if nothing is pending. changed reports that the redactor changed the events.
func (s *session) flush(ctx context.Context, to write, release, always bool) (changed bool, err error) {
	start := s.x.deps.Clock()
	e := entry{writer: frame.Claimed(s.writer, s.epoch, release), run: s.run, head: s.head, to: to, always: always}
	a, err := s.x.append(ctx, e, s.m)
	for retry := (backoff{most: s.x.cfg.HoldResults}); err != nil && s.losesResults(err) && retry.wait(ctx); {
		s.hold.refresh()
		a, err = s.x.append(ctx, e, s.m) // the same frame: the log takes it once
	}
	if err != nil {
		return false, err
	}
	s.begun()
	s.head, s.given, s.acted = a.head, nil, false
	s.held.claimed.Store(s.owns())
	s.snapshot()
	s.spans.appended(a.events, start)
	return a.changed, nil
}

// give hands the machine something from outside the log, and again if the log has moved on
// before it was appended.
func (s *session) give(do func()) {
	s.given = append(s.given, do)
	do()
}

// catchUp goes on after what somebody else wrote to the run's log, if that can be: the
// machine has the state of the log, and what it was given since.
func (s *session) catchUp(ctx context.Context, notBegun []machine.Effect) error {
	moved, err := s.reload(ctx, notBegun)
	if err != nil {
		return err
	}
	if !moved { // the append failed for another reason
		return runlog.ErrConflict
	}
	for _, do := range s.given {
		do()
	}
	return nil
}

// reload has the machine in the state of the log, without what was not appended. moved
// reports that somebody else wrote to it meanwhile, which ends the session unless it can go
// on after that.
func (s *session) reload(ctx context.Context, notBegun []machine.Effect) (moved bool, err error) {
	defer s.hold.keep()()
	folded, ferr := s.reread(ctx)
	if ferr != nil && len(folded.Frames) == 0 {
		return false, ferr
	}
	var news []wire.Event
	for _, f := range folded.Frames {
		if f.Pos <= s.head.Pos {
			continue
		}
		if !adoptable(f) {
			s.x.conflicted(f)
			return false, errLost
		}
		events, err := f.Events()
		if err != nil {
			return false, err
		}
		news = append(news, events...)
	}
	st, head, err := s.x.resumable(ctx, folded, ferr)
	if err != nil {
		return false, err
	}
	if moved = head.Pos != s.head.Pos; moved && s.m.Replays() { // its tape has run ahead of the log
		return false, errLost
	}
	s.head = head
	s.m.Refold(st, notBegun)
	s.spans.saw(news)
	return moved, nil
}

// look catches up with a log that may have moved.
func (s *session) look(ctx context.Context) (moved bool, err error) {
	last, err := s.x.deps.Log.Last(ctx, s.run)
	if err != nil || last.Pos == s.head.Pos {
		return false, nil // the next append shows it
	}
	return true, s.catchUp(ctx, nil)
}

// sleep hands the run's next instant to the waker; the delivery can be ended,
// because the waker puts the run into the queue again.
func (s *session) sleep() {
	if due, ok := s.m.Due(); ok {
		s.x.deps.Wait(s.run, s.head, due)
	}
}

// settle gives the end of an effect to the machine; the next advance appends it.
func (s *session) settle(d effectDone) error {
	s.live--
	if s.late(d) {
		return nil
	}
	switch err := d.result.Interrupted; {
	case create.NeverTaken(err): // handed out again, it would come to the same
		s.x.deps.Logger.Warn("node failed: the run's log does not take what it has to tell", "run_id", s.run.RunID, "node_id", d.effect.NodeID, "error", err)
		d.result.Interrupted, d.result.Err = nil, machine.Untold()
	case errors.Is(err, errRefused):
		s.x.deps.Logger.Error("node failed: the acceptor refuses the request about its envelope", "run_id", s.run.RunID, "node_id", d.effect.NodeID, "error", err)
		d.result.Interrupted, d.result.Err = nil, &wire.NodeError{Code: string(fault.InternalError), Message: "the host's acceptor refuses what the node hands in; its operator finds why in the host's log"}
	case err != nil:
		if d.result.Unsent {
			s.m.Release(d.effect.NodeID)
		}
		return fmt.Errorf("node %s of run %s: %w", d.effect.NodeID, s.run.RunID, d.result.Interrupted)
	}
	s.acted = s.acted || !s.asks(d.effect)
	now := s.x.deps.Clock()
	s.give(func() {
		s.m.Emit(now, d.result.Drafts...)
		if d.result.Waits {
			s.m.Suspend(now, d.effect.NodeID)
			return
		}
		if d.result.Err != nil {
			s.m.FailNode(now, d.effect.NodeID, d.result.Err, wire.Trusted.Meet(d.effect.Trust).Meet(d.result.Trust))
			return
		}
		if d.effect.Spawn != nil {
			s.m.Dispatched(now, d.effect.NodeID, *d.effect.Spawn)
			return
		}
		s.m.Complete(now, d.effect.NodeID, d.result.Output, d.result.Trust)
	})
	return nil
}

// journal is the run's log as an effect sees it: every call is served by the
// session's writer.
type journal struct {
	s      *session
	effect machine.Effect
}

// Record appends drafts in one frame; see model.Journal.
func (j journal) Record(ctx context.Context, drafts ...wire.Draft) error {
	return j.serve(ctx, request{drafts: drafts})
}

// accept has the acceptor append where the log ends, also if it has moved on meanwhile. An
// outcome that was recorded before is told wherever the log ends by then: what others have
// written in between has to be seen first.
func (j journal) accept(ctx context.Context, req model.AcceptRequest) (Accepted, error) {
	for {
		a, err := j.s.x.deps.Acceptor.Accept(ctx, j.s.run, j.s.head, j.s.m.State().Record.TrustBoundary, req)
		a.Head.Ownership = j.s.head.Ownership // the acceptor changes no ownership
		if err == nil && j.s.follows(a) || err != nil && !errors.Is(err, runlog.ErrConflict) {
			return a, err
		}
		if err := j.s.catchUp(ctx, nil); err != nil {
			return Accepted{}, err
		}
	}
}

// follows reports that the log has nothing besides what was accepted that the session
// has not seen.
func (s *session) follows(a Accepted) bool {
	if a.Head.Pos == s.head.Pos {
		return true
	}
	events := a.recorded()
	return len(events) > 0 && events[0].Sequence == s.head.Next && a.Head.Next == s.head.Next+len(events)
}

func (j journal) serve(ctx context.Context, r request) error {
	r.effect, r.reply = j.effect, make(chan error, 1)
	select {
	case j.s.inbox <- r:
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
