package engine

import (
	"context"
	"runtime/debug"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// startEffect starts an effect on another goroutine.
func (s *session) startEffect(ctx context.Context, e machine.Effect) {
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithCancel(ctx)
		s.requests, s.results = make(chan request), make(chan effectResult)
		s.handoff, s.idle = make(chan func()), make(chan struct{}, 1)
	}
	s.running++
	own := s.inflight.add(s.ctx, e)
	perform := s.spawnFunc(own, e)
	if perform == nil {
		task, rec := s.buildTask(e), s.machine.State().Record
		perform = func() model.Result { return s.performEffect(own, rec, e, task) }
	}
	s.runOnGoroutine(func() {
		res := perform()
		select {
		case s.results <- effectResult{e, res}:
		case <-s.ctx.Done():
		}
	})
}

// runOnGoroutine runs an effect on the idle goroutine, or on a new one. The stack of a used
// goroutine has already grown to the depth of a model call.
func (s *session) runOnGoroutine(effect func()) {
	select {
	case s.handoff <- effect:
	default:
		s.wg.Go(func() { s.runEffects(effect) })
	}
}

// runEffects runs effects one after the other while the session lasts. At most one goroutine waits
// for the next effect; the others end.
func (s *session) runEffects(effect func()) {
	for {
		effect()
		select {
		case s.idle <- struct{}{}:
		default:
			return
		}
		select {
		case effect = <-s.handoff:
			<-s.idle
		case <-s.ctx.Done():
			return
		}
	}
}

// buildTask runs on the writer's goroutine, because effects must not read the machine's state while
// it changes.
func (s *session) buildTask(e machine.Effect) model.Task {
	t := model.Task{
		Tenant: s.run.Tenant, RunID: s.run.RunID, WorkflowID: s.machine.State().Record.WorkflowID, TypeID: e.TypeID, Attempt: e.Attempt, Input: e.Input,
		Trust: e.Trust, Clarifications: e.Clarifications, Waits: e.Waits, Contract: s.machine.Contract(e.NodeID), Trace: s.exec.traceContext(s.machine.State().Record),
		Fallback: e.Fallback, Needs: e.Needs, CredentialRef: s.machine.State().Record.CredentialRef, Replay: s.machine.State().Record.Replays(),
		Recorded: map[string]model.Recorded{},
	}
	for _, q := range e.Answered {
		t.Answered = append(t.Answered, model.Answered{Question: q.Data, Answer: q.ResumeValue})
	}
	for _, r := range e.Retries {
		t.Retries, t.Announced = append(t.Retries, model.Retry{Attempt: r.Attempt, Reason: r.Reason, Detail: r.Detail}), r.Sequence
	}
	if n := s.machine.State().Nodes[e.NodeID]; n != nil {
		t.Composed = n.Prompt
	}
	for id, v := range s.machine.State().Envelopes {
		if v.NodeID == e.NodeID && v.Payload != nil {
			t.Recorded[id] = model.Recorded{Kind: v.Kind, EnvelopeID: v.ID, Payload: v.Payload, Sequence: v.Sequence, Answer: v.Answer}
		}
	}
	return t
}

// performEffect runs an effect. A panic fails the node, not the dispatcher.
func (s *session) performEffect(ctx context.Context, rec *wire.RunRecord, e machine.Effect, t model.Task) (res model.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.exec.deps.Logger.Error("panic in node", "run_id", s.run.RunID, "node_id", e.NodeID, "panic", obs.Panic(p), "stack", string(debug.Stack()))
			res = model.Result{Err: &wire.NodeError{Code: string(fault.InternalError), Message: "the node failed inside the host"}}
		}
	}()
	return s.runModelTask(ctx, rec, e, t)
}
