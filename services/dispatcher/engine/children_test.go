package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
)

// OpenWOP host contract §3.5, §5.6.
func TestSubWorkflow_WaitsForItsChildAndTakesItsVariables(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", `{"name":"result","type":"string","defaultValue":"done"}`, nodeJSON("n", "core.noop", "{}"))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child","outputMapping":{"outcome":"result","other":"nothing"}}`))
	f.create(t, "parent", `{}`)
	f.drain(t, f.live())
	require.Equal(t, "run.started node.started@call node.dispatched@call variable.changed@call node.completed@call run.completed", f.story(t, "run_p"))
	ids := f.runs()
	require.Len(t, ids, 2)
	st := f.state(t, "run_p")
	require.JSONEq(t, `"done"`, string(st.Variables["outcome"]))
	require.NotContains(t, st.Variables, "other", "defined values only")
	require.JSONEq(t, `"`+ids[1]+`"`, string(st.Nodes["call"].Outputs["childRunId"]))
	require.JSONEq(t, `"completed"`, string(st.Nodes["call"].Outputs["childStatus"]))
	child := f.state(t, ids[1])
	require.Equal(t, &wire.Parent{
		RunID:      "run_p",
		WorkflowID: "parent",
		NodeID:     "call",
		Depth:      1,
		Awaited:    true,
		Cascade:    true,
	}, child.Record.Parent)
	require.Equal(t, st.Record.Owner, child.Record.Owner)
	require.Equal(t, []runstate.ChildRun{{
		RunID:      ids[1],
		Status:     wire.StatusCompleted,
		WorkflowID: "child",
		NodeID:     "call",
	}}, st.Snapshot().ChildRuns)
	require.Equal(t, "run_p", child.Snapshot().ParentRunID)
	require.Equal(t, "call", child.Snapshot().ParentNodeID)
}

func TestSubWorkflow_SeedsOnceFromWhatTheParentHas(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", `{"name":"got","type":"string","defaultValue":"baked-in","required":true},{"name":"missing","type":"string","defaultValue":"baked-in","required":true},{"name":"own","type":"number","defaultValue":7}`,
		nodeJSON("n", "core.noop", "{}"))
	f.defs.add(t, "parent", `{"name":"mine","type":"string","defaultValue":"prd-1"},{"name":"unset","type":"string"}`,
		call(`{"workflowId":"child","inputMapping":{"got":"mine","missing":"unset"}}`))
	f.create(t, "parent", `{}`)
	f.drain(t, f.live())
	child := f.state(t, f.runs()[1])
	require.Equal(t, wire.StatusCompleted, child.Status)
	require.JSONEq(t, `"prd-1"`, string(child.Variables["got"]))
	require.JSONEq(t, `7`, string(child.Variables["own"]))
	require.NotContains(t, child.Variables, "missing", "neither the default nor null")
	require.JSONEq(t, `{"got":"prd-1"}`, string(mustJSON(t, child.Record.Inputs)))
}

func TestSubWorkflow_FailuresOfTheChild(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config string
		status wire.Status
		code   string
	}{
		"fail-parent": {`{"workflowId":"child"}`, wire.StatusFailed, "child_failed"},
		"absorb": {
			`{"workflowId":"child","onChildFailure":"absorb","outputMapping":{"x":"v"}}`,
			wire.StatusCompleted, "",
		},
		"unknown":      {`{"workflowId":"missing"}`, wire.StatusFailed, "unknown_child_workflow"},
		"wrong inputs": {`{"workflowId":"child","inputMapping":{"v":"n"}}`, wire.StatusFailed, "validation_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFamily(t)
			f.defs.add(t, "child", `{"name":"v","type":"string","defaultValue":"x"}`, nodeJSON("n", "core.fail", `{"code":"boom","message":"private words"}`))
			f.defs.add(t, "parent", `{"name":"n","type":"number","defaultValue":1}`, call(tc.config))
			f.create(t, "parent", `{}`)
			f.drain(t, f.live())
			st := f.state(t, "run_p")
			require.Equal(t, tc.status, st.Status)
			require.NotContains(t, string(st.SnapshotJSON()), "private words", "the child's texts stay in its log")
			if tc.code == "" {
				require.JSONEq(t, `"failed"`, string(st.Nodes["call"].Outputs["childStatus"]))
				require.NotContains(t, st.Variables, "x")
				return
			}
			require.Equal(t, tc.code, st.Error.Code)
			if tc.code == "child_failed" {
				require.Equal(t, map[string]any{
					"childRunId":      f.runs()[1],
					"childWorkflowId": "child",
					"childStatus":     "failed",
					"childErrorCode":  "boom",
				}, st.Error.Details)
			}
		})
	}
}

func TestSubWorkflow_ContinuesImmediatelyWithoutWait(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", ``, nodeJSON("gate", "core.approvalGate", approvalJSON))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child","waitForCompletion":false}`))
	f.create(t, "parent", `{}`)
	f.drain(t, f.live())
	require.Equal(t, wholeStory, f.story(t, "run_p"))
	require.JSONEq(t, `"pending"`, string(f.state(t, "run_p").Nodes["call"].Outputs["childStatus"]))
	require.Equal(t, wire.StatusWaitingApproval, f.state(t, f.runs()[1]).Status)
}

func TestSubWorkflow_NestingIsBounded(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "a", ``, call(`{"workflowId":"b"}`))
	f.defs.add(t, "b", ``, call(`{"workflowId":"a"}`))
	f.create(t, "a", `{}`)
	f.drain(t, f.live())
	ids := f.runs()
	require.Len(t, ids, 4, "the first run and three descendants")
	require.Equal(t, "recursion_limit_exceeded", f.state(t, ids[3]).Error.Code)
	require.Equal(t, "child_failed", f.state(t, "run_p").Error.Code)
}

func TestSubWorkflow_CannotRunItself(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "a", ``, call(`{"workflowId":"a"}`))
	_, err := f.starter.Start(t.Context(), create.Request{Tenant: "acme", WorkflowID: "a", RunID: "run_p"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	require.ErrorContains(t, err, "cannot run itself")
}

// OpenWOP host contract §5.6: the child's waiting status is the parent's, over all levels.
func TestSubWorkflow_MirrorsWhatTheChildWaitsFor(t *testing.T) {
	t.Parallel()
	f := gated(t, "")
	x := f.live()
	f.drain(t, x)
	ids := f.runs()
	for _, id := range ids {
		require.Equal(t, wire.StatusWaitingApproval, f.state(t, id).Status, id)
	}
	snap := f.state(t, "run_p").Snapshot()
	require.Equal(t, "call", snap.CurrentNodeID)
	require.Nil(t, snap.Interrupt, "the question of the child")
	require.Equal(t, wire.StatusWaitingApproval, snap.ChildRuns[0].Status)
	f.answer(t, x, ids[2])
	f.drain(t, x)
	require.Equal(t, waitingStory, f.story(t, "run_p"))
	require.Equal(t, waitingStory, f.story(t, ids[1]))
}

// OpenWOP host contract §2.5.
func TestSubWorkflow_CancellingCascades(t *testing.T) {
	t.Parallel()
	f := gated(t, "")
	x := f.live()
	f.drain(t, x)
	st, already, err := x.Cancel(t.Context(), "acme", "run_p", "enough", "ann")
	require.NoError(t, err)
	require.False(t, already)
	require.Equal(t, wire.StatusCancelled, st.Status)
	ids := f.runs()
	for i, id := range ids {
		require.Equal(t, wire.StatusCancelled, f.state(t, id).Status, id)
		if i > 0 {
			require.JSONEq(t, `{"reason":"parent-cancelled","cancelledBy":"system","parentRunId":"`+ids[i-1]+`"}`, f.last(t, id))
		}
	}
	require.JSONEq(t, `{"reason":"enough","cancelledBy":"ann"}`, f.last(t, "run_p"))
	_, err = x.Resolve(t.Context(), "acme", ids[2], accept("ann"))
	require.Equal(t, fault.InterruptGone, fault.CodeOf(err))
	f.drain(t, x)
	require.Equal(t, 1, strings.Count(f.story(t, "run_p"), "run.cancelled"))
}

func TestSubWorkflow_CancellingLeavesChildrenThatAreToBeLeft(t *testing.T) {
	t.Parallel()
	f := gated(t, `,"propagateCancellation":false`)
	x := f.live()
	f.drain(t, x)
	_, _, err := x.Cancel(t.Context(), "acme", "run_p", "", "ann")
	require.NoError(t, err)
	f.drain(t, x)
	ids := f.runs()
	require.Equal(t, wire.StatusCancelled, f.state(t, "run_p").Status)
	require.Equal(t, wire.StatusWaitingApproval, f.state(t, ids[1]).Status)
	require.Equal(t, wire.StatusWaitingApproval, f.state(t, "run_p").Snapshot().ChildRuns[0].Status, "the last recorded status")
}

// A cancelled child ends its parent's node.
func TestSubWorkflow_ACancelledChildFailsItsNode(t *testing.T) {
	t.Parallel()
	f := gated(t, "")
	x := f.live()
	f.drain(t, x)
	_, _, err := x.Cancel(t.Context(), "acme", f.runs()[2], "", "ann")
	require.NoError(t, err)
	f.drain(t, x)
	st := f.state(t, "run_p")
	require.Equal(t, "child_failed", st.Error.Code)
	require.Equal(t, "failed", st.Error.Details["childStatus"])
	require.Equal(t, "cancelled", f.state(t, f.runs()[1]).Error.Details["childStatus"])
}

// A parent that times out cancels its children.
func TestSubWorkflow_ATimedOutParentCancelsItsChildren(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", ``, nodeJSON("n", "core.delay", `{"delayMs":600000}`))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
	_, err := f.starter.Start(t.Context(), create.Request{
		Tenant: "acme", WorkflowID: "parent", RunID: "run_p", Configurable: json.RawMessage(`{"runTimeoutMs":1000}`),
	})
	require.NoError(t, err)
	x := f.live()
	f.drain(t, x)
	f.ahead = 2 * time.Second
	wakeLost(t, x, subject.Run{Tenant: "acme", RunID: "run_p"})
	f.drain(t, x)
	require.Equal(t, "run_timeout", f.state(t, "run_p").Error.Code)
	require.Equal(t, wire.StatusCancelled, f.state(t, f.runs()[1]).Status)
}

// A parent pauses immediately while its child continues. The parent reads the child's end when it
// resumes.
func TestSubWorkflow_APausedParentReadsTheEndOfItsChildOnResume(t *testing.T) {
	t.Parallel()
	for _, policy := range []wire.DrainPolicy{wire.DrainNot, wire.DrainCurrent} {
		f := newFamily(t)
		f.defs.add(t, "child", ``, nodeJSON("n", "core.delay", `{"delayMs":60000}`))
		f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
		f.create(t, "parent", `{}`)
		x := f.live()
		f.drain(t, x)
		_, err := x.Pause(t.Context(), "acme", "run_p", policy, "", "ann")
		require.NoError(t, err)
		require.Equal(t, wire.StatusPaused, f.state(t, "run_p").Status, policy)
		f.ahead += 2 * time.Minute
		wakeLost(t, x, subject.Run{Tenant: "acme", RunID: f.runs()[1]})
		f.drain(t, x)
		require.Equal(t, wire.StatusCompleted, f.state(t, f.runs()[1]).Status)
		require.Equal(t, wire.StatusPaused, f.state(t, "run_p").Status, "the child's end is not recorded during the pause")
		_, err = x.Resume(t.Context(), "acme", "run_p", "")
		require.NoError(t, err)
		f.drain(t, x)
		require.Equal(t, "run.started node.started@call node.dispatched@call run.paused run.resumed node.completed@call run.completed", f.story(t, "run_p"))
		require.Len(t, f.runs(), 2)
	}
}

// A replay makes no external calls, and starts no runs.
func TestSubWorkflow_AReplayStartsNone(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", ``, nodeJSON("n", "core.noop", "{}"))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
	f.create(t, "parent", `{}`)
	f.drain(t, f.live())
	source := f.state(t, "run_p")
	require.Equal(t, wire.StatusCompleted, source.Status)
	before := f.runs()
	rec := &wire.RunRecord{
		RunID: "run_r", WorkflowID: "parent", WorkflowDigest: f.defs.byID["parent"].Digest, Owner: wire.Owner{Tenant: "acme"},
		Fork: &wire.Fork{SourceRunID: "run_p", Mode: wire.ForkReplay, Head: source.Next},
	}
	_, err := f.log.Append(t.Context(), frame.NewStart(subject.Run{
		Tenant:     "acme",
		WorkflowID: "parent",
		RunID:      "run_r",
	}, mustJSON(t, rec)), 0)
	require.NoError(t, err)
	f.drain(t, f.live())
	require.Len(t, f.runs(), len(before)+1)
	require.Equal(t, f.story(t, "run_p"), f.story(t, "run_r"))
}

// A child delivered twice is read by two dispatchers. The one that read it first and reports last
// must not report the old wait: the parent would wait for an answer that it has.
func TestSubWorkflow_IgnoresAReportOfAnOldWait(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	def, problems := workflow.Parse([]byte(`{"id":"child","name":"n","version":"1","nodes":[` + nodeJSON("gate", "core.approvalGate", approvalJSON) + `,` +
		nodeJSON("then", "core.delay", `{"delayMs":60000}`) + `],"edges":[{"id":"e","sourceNodeId":"gate","targetNodeId":"then"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`))
	require.Empty(t, problems)
	e := &definition.Entry{Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}
	f.defs.byID["child"], f.defs.byDigest[e.Digest] = e, e
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
	f.create(t, "parent", `{}`)
	f.drain(t, f.live())
	child := f.runs()[1]
	first, err := f.log.First(t.Context(), subject.Run{Tenant: "acme", RunID: child})
	require.NoError(t, err)

	late, answered := f.live(), false
	late.log.reads = func(runID string) { // called after it read the waiting child, before it reports
		if runID == "run_p" && !answered {
			answered = true
			other := f.live()
			f.answer(t, other, child)
			f.drain(t, other)
		}
	}
	late.Execute(t.Context(), redelivered{again{first}})
	require.True(t, answered)
	require.Equal(t, "run.started node.started@call node.dispatched@call node.suspended@call node.resumed@call", f.story(t, "run_p"))
	require.Equal(t, wire.StatusRunning, f.state(t, "run_p").Status)
}

// redelivered is a delivery that another dispatcher had before.
type redelivered struct{ again }

func (redelivered) Redelivered() bool { return true }
