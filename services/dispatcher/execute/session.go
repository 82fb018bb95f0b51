package execute

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/run"
)

// session is one run in execution: the only writer of its log while it lasts.
type session struct {
	x        *Executor
	delivery runlog.Delivery
	run      subject.Run
	head     frame.Head
	m        *run.Machine
	// writer marks this session's frames: see frame.Frame.Writer.
	writer string
	spans  *spans

	// Effects reach the writer through these.
	inbox  chan request
	done   chan effectDone
	ctx    context.Context //nolint:containedctx // the effects' lifetime, ended by stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	live   int
}

// request is a call of an effect that the writer serves.
type request struct {
	do    func(ctx context.Context) error
	reply chan error
}

type effectDone struct {
	effect run.Effect
	result completion.Result
}

func newSession(x *Executor, d runlog.Delivery, r subject.Run, head frame.Head, m *run.Machine) *session {
	return &session{x: x, delivery: d, run: r, head: head, m: m, writer: x.newWriter()}
}

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
	for {
		effects, err := s.advance(ctx)
		if err != nil {
			return s.lostOr(ctx, err)
		}
		for _, e := range effects {
			s.begin(ctx, e)
		}
		if s.m.State().Status.Terminal() {
			return nil
		}
		if s.live == 0 {
			s.sleep()
			return nil
		}
		if err := s.wait(ctx); err != nil {
			return s.lostOr(ctx, err)
		}
	}
}

// lostOr tells the loss of the run from other reasons to stop.
func (s *session) lostOr(ctx context.Context, err error) error {
	if errors.Is(err, runlog.ErrConflict) || errors.Is(context.Cause(ctx), errAborted) {
		return errLost
	}
	return err
}

// advance takes all steps that are possible now and appends them. When the
// redactor changed something, the machine goes on from what is in the log.
func (s *session) advance(ctx context.Context) ([]run.Effect, error) {
	for {
		effects := s.m.Advance(s.x.deps.Clock())
		changed, err := s.flush(ctx)
		if err != nil || !changed {
			return effects, err
		}
		st, head, err := s.x.load(ctx, s.run)
		if err != nil {
			return nil, err
		}
		s.head = head
		s.m.Refold(st, effects)
	}
}

// flush appends what is pending.
func (s *session) flush(ctx context.Context) (changed bool, err error) {
	start := s.x.deps.Clock()
	a, err := s.x.append(ctx, s.writer, s.run, s.head, s.m)
	if errors.Is(err, runlog.ErrConflict) {
		next, woken, rerr := s.x.onlyWoken(ctx, s.run, s.head)
		if rerr != nil || !woken {
			return false, errors.Join(err, rerr)
		}
		s.head = next
		a, err = s.x.append(ctx, s.writer, s.run, s.head, s.m)
	}
	if err != nil {
		return false, err
	}
	s.head = a.head
	s.spans.appended(a.events, start)
	return a.changed, nil
}

// sleep hands the run's next instant to the waker; the delivery can be ended,
// because the waker puts the run into the queue again.
func (s *session) sleep() {
	if due, ok := s.m.Due(); ok {
		s.x.deps.Wait(s.run, s.head, due)
	}
}

// begin starts an effect beside the writer.
func (s *session) begin(ctx context.Context, e run.Effect) {
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithCancel(ctx)
		s.inbox, s.done = make(chan request), make(chan effectDone)
	}
	s.live++
	task := s.task(e)
	s.wg.Go(func() {
		res := s.perform(e, task)
		select {
		case s.done <- effectDone{e, res}:
		case <-s.ctx.Done():
		}
	})
}

// task is read here, on the writer's goroutine: the effect never sees the
// machine's state while it changes.
func (s *session) task(e run.Effect) completion.Task {
	t := completion.Task{
		Tenant: s.run.Tenant, RunID: s.run.RunID, WorkflowID: s.m.State().Record.WorkflowID, TypeID: e.TypeID, Attempt: e.Attempt, Input: e.Input,
		Trust: e.Trust, Clarifications: e.Clarifications, Contract: s.m.Contract(e.NodeID), Trace: s.x.trace(s.m.State().Record),
		Fallback: e.Fallback, Needs: e.Needs, CredentialRef: s.m.State().Record.CredentialRef,
		Recorded: map[string]completion.Recorded{},
	}
	for _, r := range e.Retries {
		t.Retries = append(t.Retries, completion.Retry{Attempt: r.Attempt, Reason: r.Reason, Detail: r.Detail})
	}
	if n := s.m.State().Nodes[e.NodeID]; n != nil {
		t.Composed = n.Prompt
	}
	for id, v := range s.m.State().Envelopes {
		if v.NodeID == e.NodeID && v.Payload != nil {
			t.Recorded[id] = completion.Recorded{Kind: v.Kind, EnvelopeID: v.ID, Payload: v.Payload, Sequence: v.Sequence, Answer: v.Answer}
		}
	}
	return t
}

// perform carries an effect out. A panic fails the node, not the dispatcher.
func (s *session) perform(e run.Effect, t completion.Task) (res completion.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.x.deps.Logger.Error("panic in node", "run_id", s.run.RunID, "node_id", e.NodeID, "panic", obs.Panic(p), "stack", string(debug.Stack()))
			res = completion.Result{Err: &wire.NodeError{Code: string(fault.InternalError), Message: "the node failed inside the host"}}
		}
	}()
	return s.x.deps.Models.Run(s.ctx, t, journal{s: s, effect: e})
}

// wait serves the effects until one of them ends or an instant is due.
func (s *session) wait(ctx context.Context) error {
	heartbeat := time.NewTicker(s.x.cfg.Heartbeat)
	defer heartbeat.Stop()
	due, stopDue := s.dueTimer()
	defer stopDue()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-heartbeat.C:
			if err := s.delivery.Extend(); err != nil {
				s.x.deps.Logger.Debug("heartbeat failed", "run_id", s.run.RunID, "error", err)
			}
		case <-due:
			return nil
		case r := <-s.inbox:
			r.reply <- r.do(ctx)
		case d := <-s.done:
			s.live--
			return s.settle(d)
		}
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

// settle gives the end of an effect to the machine; the next advance appends it.
func (s *session) settle(d effectDone) error {
	if d.result.Interrupted != nil {
		return fmt.Errorf("node %s of run %s: %w", d.effect.NodeID, s.run.RunID, d.result.Interrupted)
	}
	now := s.x.deps.Clock()
	s.m.Emit(now, d.result.Drafts...)
	if d.result.Err != nil {
		s.m.FailNode(now, d.effect.NodeID, d.result.Err, wire.Trusted.Meet(d.effect.Trust).Meet(d.result.Trust))
		return nil
	}
	s.m.Complete(now, d.effect.NodeID, d.result.Output, d.result.Trust)
	return nil
}

// journal is the run's log as an effect sees it: every call is served by the
// session's writer.
type journal struct {
	s      *session
	effect run.Effect
}

// Record appends drafts in one frame; see completion.Journal.
func (j journal) Record(ctx context.Context, drafts ...wire.Draft) error {
	return j.serve(ctx, func(ctx context.Context) error {
		j.s.m.Emit(j.s.x.deps.Clock(), drafts...)
		_, err := j.s.flush(ctx)
		return err
	})
}

// Accept runs an envelope through the pipeline; see completion.Journal.
func (j journal) Accept(ctx context.Context, req completion.AcceptRequest) (completion.Outcome, error) {
	var out completion.Outcome
	err := j.serve(ctx, func(ctx context.Context) error {
		a, err := j.s.x.deps.Acceptor.Accept(ctx, j.s.run, j.s.head, j.s.m.State().Record.TrustBoundary, req)
		if err != nil {
			return err
		}
		j.s.head = a.Head
		j.s.m.Adopt(a.Events)
		j.s.spans.saw(a.Events)
		out = a.Outcome
		return nil
	})
	return out, err
}

func (j journal) serve(ctx context.Context, do func(context.Context) error) error {
	r := request{do: do, reply: make(chan error, 1)}
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
