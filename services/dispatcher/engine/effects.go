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

// begin starts an effect beside the writer.
func (s *session) begin(ctx context.Context, e machine.Effect) {
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithCancel(ctx)
		s.inbox, s.done = make(chan request), make(chan effectDone)
		s.spare, s.waits = make(chan func()), make(chan struct{}, 1)
	}
	s.live++
	own := s.inflight.add(s.ctx, e)
	perform := s.spawning(own, e)
	if perform == nil {
		task, rec := s.task(e), s.m.State().Record
		perform = func() model.Result { return s.perform(own, rec, e, task) }
	}
	s.do(func() {
		res := perform()
		select {
		case s.done <- effectDone{e, res}:
		case <-s.ctx.Done():
		}
	})
}

// do carries out an effect on a goroutine of its own: if there is one, on that of an effect before.
// Such a one has the room on its stack that a call of a model takes, which a new one has to be moved
// for several times.
func (s *session) do(effect func()) {
	select {
	case s.spare <- effect:
	default:
		s.wg.Go(func() { s.work(effect) })
	}
}

// work carries out effects, one after the other, while the session lasts. One goroutine waits for the
// next effect; where several have ended at a time, the others end.
func (s *session) work(effect func()) {
	for {
		effect()
		select {
		case s.waits <- struct{}{}:
		default:
			return
		}
		select {
		case effect = <-s.spare:
			<-s.waits
		case <-s.ctx.Done():
			return
		}
	}
}

// task is read here, on the writer's goroutine: the effect never sees the
// machine's state while it changes.
func (s *session) task(e machine.Effect) model.Task {
	t := model.Task{
		Tenant: s.run.Tenant, RunID: s.run.RunID, WorkflowID: s.m.State().Record.WorkflowID, TypeID: e.TypeID, Attempt: e.Attempt, Input: e.Input,
		Trust: e.Trust, Clarifications: e.Clarifications, Waits: e.Waits, Contract: s.m.Contract(e.NodeID), Trace: s.x.trace(s.m.State().Record),
		Fallback: e.Fallback, Needs: e.Needs, CredentialRef: s.m.State().Record.CredentialRef, Replay: s.m.State().Record.Replays(),
		Recorded: map[string]model.Recorded{},
	}
	for _, q := range e.Answered {
		t.Answered = append(t.Answered, model.Answered{Question: q.Data, Answer: q.ResumeValue})
	}
	for _, r := range e.Retries {
		t.Retries, t.Announced = append(t.Retries, model.Retry{Attempt: r.Attempt, Reason: r.Reason, Detail: r.Detail}), r.Sequence
	}
	if n := s.m.State().Nodes[e.NodeID]; n != nil {
		t.Composed = n.Prompt
	}
	for id, v := range s.m.State().Envelopes {
		if v.NodeID == e.NodeID && v.Payload != nil {
			t.Recorded[id] = model.Recorded{Kind: v.Kind, EnvelopeID: v.ID, Payload: v.Payload, Sequence: v.Sequence, Answer: v.Answer}
		}
	}
	return t
}

// perform carries an effect out. A panic fails the node, not the dispatcher.
func (s *session) perform(ctx context.Context, rec *wire.RunRecord, e machine.Effect, t model.Task) (res model.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.x.deps.Logger.Error("panic in node", "run_id", s.run.RunID, "node_id", e.NodeID, "panic", obs.Panic(p), "stack", string(debug.Stack()))
			res = model.Result{Err: &wire.NodeError{Code: string(fault.InternalError), Message: "the node failed inside the host"}}
		}
	}()
	return s.guarded(ctx, rec, e, t)
}
