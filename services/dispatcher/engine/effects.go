package engine

import (
	"context"
	"runtime/debug"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// startEffect starts an effect on another goroutine.
func (s *session) startEffect(ctx context.Context, e machine.Effect) {
	perform, release := s.effectFunc(e), s.places.take(e)
	s.effects.start(ctx, e, func(ctx context.Context, port writerPort) model.Result {
		defer release()
		return perform(ctx, port)
	})
}

// effectFunc returns the function that performs an effect. It reads the machine's state here, on
// the writer's goroutine, because an effect must not read the state while it changes.
func (s *session) effectFunc(e machine.Effect) effectFunc {
	st := s.machine.State()
	if e.Spawn != nil {
		return s.exec.spawnFunc(st.Record, e)
	}
	task := buildTask(s.claim.run, st, e)
	task.Contract, task.Trace = s.machine.Contract(e.NodeID), s.exec.traceContext(st.Record)
	return func(ctx context.Context, port writerPort) model.Result {
		return s.exec.performEffect(ctx, st.Record, e, task, journal{port, e})
	}
}

// buildTask returns the task of an effect, with what the run has recorded for it.
func buildTask(r subject.Run, st *runstate.State, e machine.Effect) model.Task {
	t := model.Task{
		Tenant:          r.Tenant,
		RunID:           r.RunID,
		WorkflowID:      st.Record.WorkflowID,
		CredentialRef:   st.Record.CredentialRef,
		Replay:          st.Record.Replays(),
		TypeID:          e.TypeID,
		Attempt:         e.Attempt,
		Input:           e.Input,
		Trust:           e.Trust,
		Clarifications:  e.Clarifications,
		QuestionTimeout: e.QuestionTimeout,
		Waits:           e.Waits,
		Fallback:        e.Fallback,
		Needs:           e.Needs,
		Recorded:        map[string]model.Recorded{},
	}
	for _, q := range e.Answered {
		a := model.Answered{Question: q.Data, Answer: q.ResumeValue}
		for _, v := range st.SentWith(q.InterruptID) {
			if !t.Lists(v.Sequence) {
				a.Others = append(a.Others, recordedOf(v))
			}
		}
		t.Answered = append(t.Answered, a)
	}
	for _, r := range e.Retries {
		t.Retries = append(t.Retries, model.Retry{Attempt: r.Attempt, Reason: r.Reason, Detail: r.Detail})
		t.Announced = r.Sequence
	}
	if n := st.Nodes[e.NodeID]; n != nil {
		t.Composed, t.Rounds = n.Prompt, n.Rounds
	}
	for id, v := range st.Envelopes {
		if v.NodeID == e.NodeID && v.Payload != nil {
			t.Recorded[id] = recordedOf(v)
		}
	}
	return t
}

func recordedOf(v *runstate.Envelope) model.Recorded {
	return model.Recorded{
		Kind:       v.Kind,
		EnvelopeID: v.ID,
		Payload:    v.Payload,
		Sequence:   v.Sequence,
		Answer:     v.Answer,
		Hints:      v.Hints,
	}
}

// performEffect runs an effect. A panic fails the node, not the dispatcher.
func (e *Executor) performEffect(
	ctx context.Context, rec *wire.RunRecord, effect machine.Effect, t model.Task, j journal,
) (res model.Result) {
	defer func() {
		if p := recover(); p != nil {
			e.deps.Logger.Error("panic in node",
				"run_id", rec.RunID, "node_id", effect.NodeID, "panic", obs.Panic(p), "stack", string(debug.Stack()))
			res = failedResult(fault.New(fault.InternalError, "the node failed inside the host"))
		}
	}()
	return e.runModelTask(ctx, rec, effect, t, j)
}
