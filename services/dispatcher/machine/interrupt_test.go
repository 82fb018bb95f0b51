package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// decide returns the decision about an answer to a node's question.
func decide(t *testing.T, m *machine.Machine, id, value string) interrupt.Decision {
	t.Helper()
	q := m.State().Open(id)
	require.NotNil(t, q)
	d, err := interrupt.Decide(q.Pending, interrupt.Answer{
		Value: json.RawMessage(value),
		By:    interrupt.Responder{Principal: "key"},
		At:    at,
	})
	require.NoError(t, err)
	return d
}

// lifted returns the events that the accept pipeline records for a model's nth question.
func lifted(n int) []wire.Draft {
	cause := fmt.Sprint("c", n)
	return []wire.Draft{
		{
			Type:        wire.EventClarificationRequested,
			NodeID:      "a",
			CausationID: cause,
			Payload:     json.RawMessage(fmt.Sprintf(`{"nodeId":"a","interruptId":"int_%d","questions":[]}`, n)),
		},
		{Type: wire.EventInterruptRequested, NodeID: "a", CausationID: cause, Payload: json.RawMessage(fmt.Sprintf(
			`{"runId":"run_1","nodeId":"a","interruptId":"int_%d","kind":"clarification","key":"k%d","data":{"questions":[{"id":"q","question":"?"}]},"requestedAt":"2026-05-01T12:00:00.000Z"}`, n, n))},
	}
}

// OpenWOP envelope contract §3.3: two questions of one turn are two interrupts. The model is called
// again after both answers.
func TestLift_TheModelContinuesWithAllAnswers(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	require.Len(t, m.Advance(at), 1)
	m.Emit(at, append(lifted(1), lifted(2)...)...)
	require.True(t, m.Suspend(at, "a"))
	require.Equal(t, wire.StatusWaitingInput, m.State().Status)
	require.Empty(t, m.Advance(at))
	log := appended(m)

	m = machine.NewChange(g.plan(t), limits, refolded(t, g, log).State())
	m.Resolve(at, "a", decide(t, m, "a", `{"answers":{"q":1}}`))
	require.Equal(t, "interrupt.resolved@a clarification.resolved@a", strings.Join(names(m), " "), "the other question is open")
	require.Equal(t, wire.StatusWaitingInput, m.State().Status)
	require.Empty(t, m.Advance(at))
	m.Resolve(at, "a", decide(t, m, "a", `{"answers":{"q":2}}`))
	require.Equal(t, wire.StatusRunning, m.State().Status)
	require.Len(t, m.Advance(at), 1, "for the next executor")
	require.Equal(t, subject.Wake, m.FrameKind())
	note := *m.Note()
	require.Equal(t, []string{"a"}, note.Held, "its model is not called yet")
	log = append(log, appended(m)...)

	m = refolded(t, g, log, note)
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Equal(t, []string{"a"}, m.Note().Begun)
	require.Zero(t, effects[0].Attempt, "the same attempt continues")
	require.Len(t, effects[0].Answered, 2)
	require.JSONEq(t, `{"answers":{"q":2}}`, string(effects[0].Answered[1].ResumeValue))
}

// If the executor is lost after the question was recorded and before the node was suspended, the
// next executor suspends the node and calls no model.
func TestLift_OutlivesTheExecutor(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Emit(at, lifted(1)...)
	m = refolded(t, g, appended(m))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "node.suspended@a", strings.Join(names(m), " "))
	require.Equal(t, wire.StatusWaitingInput, m.State().Status)
}

// An answer that arrives before the node is suspended counts, and the model is called.
func TestLift_AnAnswerCanBeEarly(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Emit(at, lifted(1)...)
	m.Emit(at, decide(t, m, "a", `{"answers":{"q":1}}`).Events...)
	require.False(t, m.Suspend(at, "a"))
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Len(t, effects[0].Answered, 1)
}

// OpenWOP host contract §3.1: a run waits only if no node is ready or running. Its status is that
// of the first suspended node.
func TestWaiting_IsTheStatusOnlyWhenNothingElseGoesOn(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{
		`a:core.approvalGate:{"title":"t","actions":["accept"]}`, `b:core.clarificationGate:{"questions":[{"id":"q","question":"?"}]}`, "c:core.ai.callPrompt",
	}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	require.Len(t, m.Advance(at), 1)
	require.Equal(t, wire.StatusRunning, m.State().Status)
	m.Complete(at, "c", node.Output{}, wire.Trusted)
	require.Equal(t, wire.StatusWaitingApproval, m.State().Status)
	m.Resolve(at, "a", decide(t, m, "a", `{"action":"accept"}`))
	require.Equal(t, wire.StatusWaitingInput, m.State().Status)
	m.Resolve(at, "b", decide(t, m, "b", `{"answers":{"q":"x"}}`))
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}

// OpenWOP host contract §12 no. 41: waiting does not count against the run's time limit.
func TestWaiting_StopsTheClockOfTheRun(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes: []string{`a:core.approvalGate:{"title":"t","actions":["accept"]}`, "b:core.ai.callPrompt"},
		edges: []string{"a>b"},
	}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	_, due := m.Due()
	require.False(t, due, "it waits without a due time")
	late := at.Add(1000 * time.Hour)
	require.Empty(t, m.Advance(late))
	require.Equal(t, wire.StatusWaitingApproval, m.State().Status)
	d := decide(t, m, "a", `{"action":"accept"}`)
	m.Resolve(late, "a", d)
	require.Len(t, m.Advance(late), 1)
	require.Equal(t, late.Add(limits.MaxDuration), m.Deadline())
}

// OpenWOP host contract §6.1: a question with the key of an answered one is not asked again.
func TestAsk_TheSameKeyIsAskedOnce(t *testing.T) {
	t.Parallel()
	config := `{"title":"t","actions":["accept"],"key":"once"}`
	g := graph{
		nodes: []string{"a:core.approvalGate:" + config, "b:core.approvalGate:" + config},
		edges: []string{"a>b"},
	}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Resolve(at, "a", decide(t, m, "a", `{"action":"accept"}`))
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
	require.Equal(t, 1, strings.Count(strings.Join(names(m), " "), "interrupt.requested"))
	require.Equal(t, m.State().Nodes["a"].Outputs, m.State().Nodes["b"].Outputs)
}

// A question with the key of another but different content is asked. In particular, an approval
// does not pass a gate with other approvers (OpenWOP host contract §6.1, §6.3).
func TestAsk_TheKeyOfAnotherQuestionAnswersNothing(t *testing.T) {
	t.Parallel()
	const approval = `core.approvalGate:{"title":"t","actions":["accept","reject"],"key":"k"`
	for name, tc := range map[string]struct{ first, answer, second string }{
		"another kind":       {`core.interrupt:{"kind":"custom","data":{"customKind":"x"},"key":"k"}`, `{"action":"accept"}`, approval + `}`},
		"other approvers":    {approval + `}`, `{"action":"accept"}`, approval + `,"approverGroupRefs":["finance"]}`},
		"more approvals":     {approval + `}`, `{"action":"accept"}`, approval + `,"requiredApprovals":2}`},
		"a narrower answer":  {approval + `}`, `{"action":"accept"}`, approval + `,"resumeSchema":{"required":["feedback"]}}`},
		"fewer actions":      {`core.approvalGate:{"title":"t","actions":["accept","refine"],"key":"k"}`, `{"action":"refine","refineFeedback":{"scope":"whole"}}`, approval + `}`},
		"another event":      {event(1), `{"n":1}`, event(2)},
		"an approval before": {approval + `}`, `{"action":"accept"}`, `core.interrupt:{"kind":"custom","data":{"customKind":"x"},"key":"k"}`},
	} {
		g := graph{nodes: []string{"a:" + tc.first, "b:" + tc.second}, edges: []string{"a>b"}}
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		m.Advance(at)
		m.Resolve(at, "a", decide(t, m, "a", tc.answer))
		m.Advance(at)
		require.NotNil(t, m.State().Open("b"), name)
		require.Equal(t, runstate.NodeSuspended, m.State().Nodes["b"].Status, name)
	}
}

func event(n int) string {
	return fmt.Sprintf(`core.interrupt:{"kind":"external-event","data":{"eventType":"e","correlation":{"n":%d}},"key":"k"}`, n)
}

// A rejection also applies to later gates that ask the same question.
func TestAsk_WhatWasRejectedAdvancesNoOtherGate(t *testing.T) {
	t.Parallel()
	config := `{"title":"t","actions":["accept","reject"],"key":"once"}`
	g := graph{
		nodes: []string{"a:core.approvalGate:" + config, "b:core.approvalGate:" + config, "c:core.noop"},
		edges: []string{"a>b:all_complete", "b>c"},
	}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Resolve(at, "a", decide(t, m, "a", `{"action":"reject"}`))
	m.Advance(at)
	require.Equal(t, wire.StatusFailed, m.State().Status)
	require.Equal(t, runstate.NodeFailed, m.State().Nodes["b"].Status)
	require.Equal(t, "interrupt_rejected", m.State().Nodes["b"].Error.Code)
	require.Equal(t, runstate.NodeSkipped, m.State().Nodes["c"].Status)
}

// OpenWOP host contract §3.1: a waiting run can be cancelled.
func TestCancel_OfAWaitingRun(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{`a:core.approvalGate:{"title":"t","actions":["accept"]}`}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	appended(m)
	m.Cancel(at, wire.CancelNote{Reason: "enough", By: "key"})
	require.Equal(t, "node.cancelled@a run.cancelled", strings.Join(names(m), " "))
	require.Equal(t, wire.StatusCancelled, m.State().Status)
}

// OpenWOP envelope contract §18: a node's form is an output of the node before it. An invalid form
// fails the node, and the error contains its path.
func TestForm_ComesFromTheNodeBefore(t *testing.T) {
	t.Parallel()
	const surface = `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"field.text","id":"why","label":"Why","required":true}]}}`
	for given, want := range map[string]string{surface: "", `{"surface":{}}`: "/data/payload"} {
		m := machine.New(planOf(t, one("make", "core.identity", "{}", `{"output":{"type":"static","value":`+given+`}}`)+","+
			one("ask", "core.interrupt", `{"kind":"custom","data":{"customKind":"ui.a2ui-surface"}}`, `{"input":{"type":"connection","nodeId":"make","outputKey":"output"}}`),
			`{"id":"e","sourceNodeId":"make","sourceOutput":"output","targetNodeId":"ask","targetInput":"input"}`, noVars), limits, runstate.New(record()))
		require.Empty(t, m.Advance(at))
		if want != "" {
			require.Equal(t, wire.StatusFailed, m.State().Status)
			require.Contains(t, m.State().Nodes["ask"].Error.Message, want)
			continue
		}
		require.Equal(t, wire.StatusWaitingExternal, m.State().Status)
		_, err := interrupt.Decide(m.State().Open("ask").Pending, interrupt.Answer{
			Value: json.RawMessage(`{}`),
			By:    interrupt.Responder{Principal: "key"},
			At:    at,
		})
		require.ErrorContains(t, err, "/resumeValue/why")
		m.Resolve(at, "ask", decide(t, m, "ask", `{"why":"because"}`))
		m.Advance(at)
		require.Equal(t, wire.StatusCompleted, m.State().Status)
		require.JSONEq(t, `"because"`, string(m.State().Nodes["ask"].Outputs["why"]))
	}
}

// OpenWOP host contract §6.1: low-confidence suspends the node below the threshold. At the
// threshold no question is asked. A replay has the same events.
func TestAsk_NoQuestionAtOrAboveTheThreshold(t *testing.T) {
	t.Parallel()
	for observed, want := range map[string]string{
		`0.7`:  "run.started node.started@a node.completed@a node.started@b node.completed@b run.completed",
		`0.69`: "run.started node.started@a node.suspended@a interrupt.requested@a",
		`1.5`:  "run.started node.started@a node.failed@a node.skipped@b run.failed",
		`"hi"`: "run.started node.started@a node.failed@a node.skipped@b run.failed",
	} {
		g := graph{
			nodes:  []string{`a:core.interrupt:{"kind":"low-confidence","data":{"agentId":"abc"}}`, "b:core.noop"},
			edges:  []string{"a>b"},
			inputs: map[string]string{"a": `{"observed":{"type":"static","value":` + observed + `},"input":{"type":"static","value":"send it"}}`},
		}
		told, m, effects := trace(t, g)
		require.Empty(t, effects)
		require.Equal(t, want, strings.Join(told, " "), observed)
		switch m.State().Status {
		case wire.StatusCompleted:
			require.JSONEq(t, `"send it"`, string(m.State().Nodes["a"].Outputs["decision"]))
			source := appended(m)
			fork := record(func(r *wire.RunRecord) {
				r.RunID, r.Fork = "run_2", &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkReplay, Head: len(source)}
			})
			again := machine.NewReplay(g.plan(t), limits, runstate.New(fork), machine.NewHistory(*fork.Fork, source, nil))
			again.Advance(at)
			require.Equal(t, want, strings.Join(names(again), " "))
		case wire.StatusWaitingApproval:
			require.JSONEq(t, `{"agentId":"abc","threshold":0.7,"observed":0.69,"decision":"send it"}`, string(m.State().Open("a").Data))
		default:
			require.Contains(t, m.State().Error.Message, "/config/data/observed")
		}
	}
}

// OpenWOP host contract §6.6: a confidence or a decision from an untrusted source passes no gate. A person
// is asked, and the log has the reason.
func TestAsk_AQuestionIfTheConfidenceIsUntrusted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ observed, decision, inputs, typ string }{
		"the confidence": {`{"type":"variable","variableName":"v"}`, `{"type":"static","value":"send it"}`, `0.99`, "number"},
		"the decision":   {`{"type":"static","value":0.99}`, `{"type":"variable","variableName":"v"}`, `"send it"`, "string"},
	} {
		g := graph{
			nodes:  []string{`a:core.interrupt:{"kind":"low-confidence","data":{"agentId":"abc"}}`},
			inputs: map[string]string{"a": `{"observed":` + tc.observed + `,"input":` + tc.decision + `}`},
			vars:   `[{"name":"v","type":"` + tc.typ + `"}]`,
		}
		for _, trust := range []wire.Trust{wire.Trusted, wire.Untrusted} {
			r := record(func(r *wire.RunRecord) {
				r.TrustBoundary, r.Inputs = trust, map[string]json.RawMessage{"v": json.RawMessage(tc.inputs)}
			})
			m := machine.New(g.plan(t), limits, runstate.New(r))
			require.Empty(t, m.Advance(at))
			if trust == wire.Trusted {
				require.Equal(t, wire.StatusCompleted, m.State().Status, name)
				continue
			}
			require.Equal(t, "run.started node.started@a log.appended@a node.suspended@a interrupt.requested@a", strings.Join(names(m), " "), name)
			require.Contains(t, payloadOf(t, m, wire.EventLogAppended), `"code":"untrusted_content_blocks_approval"`)
			m.Resolve(at, "a", decide(t, m, "a", `{"decision":"send it"}`))
			m.Advance(at)
			require.Equal(t, wire.StatusCompleted, m.State().Status, "a person's answer counts")
		}
	}
}
