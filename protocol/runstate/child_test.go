package runstate_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// family folds events of a node "call", one second apart.
func family(t *testing.T, events ...wire.Draft) *runstate.State {
	t.Helper()
	st := runstate.New(&wire.RunRecord{RunID: "p", WorkflowID: "w", Owner: wire.Owner{Tenant: "acme"}})
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	all := append([]wire.Draft{of(wire.EventRunStarted, "", `{}`), of(wire.EventNodeStarted, "call", `{"nodeId":"call","typeId":"core.subWorkflow"}`)}, events...)
	for i, d := range all {
		st.Apply(d.Place("p", i, at.Add(time.Duration(i)*time.Second)))
	}
	return st
}

func of(t wire.EventType, node, payload string) wire.Draft {
	return wire.Draft{Type: t, NodeID: node, Payload: json.RawMessage(payload)}
}

const (
	isThere = `{"childRunId":"c","childWorkflowId":"k"}`
	waits   = `{"nodeId":"call","interruptId":"i","kind":"clarification"}`
)

func TestChild_FollowsTheLog(t *testing.T) {
	t.Parallel()
	there := of(wire.EventNodeDispatched, "call", isThere)
	suspended := of(wire.EventNodeSuspended, "call", waits)
	for name, tc := range map[string]struct {
		events []wire.Draft
		child  wire.Status
		run    wire.Status
	}{
		"is there":  {[]wire.Draft{there}, wire.StatusRunning, wire.StatusRunning},
		"waits":     {[]wire.Draft{there, suspended}, wire.StatusWaitingInput, wire.StatusWaitingInput},
		"goes on":   {[]wire.Draft{there, suspended, of(wire.EventNodeResumed, "call", `{"nodeId":"call","interruptId":"i"}`)}, wire.StatusRunning, wire.StatusRunning},
		"completed": {[]wire.Draft{there, of(wire.EventNodeCompleted, "call", `{"nodeId":"call","outputs":{"childRunId":"c","childStatus":"completed"}}`)}, wire.StatusCompleted, wire.StatusRunning},
		"failed":    {[]wire.Draft{there, of(wire.EventNodeFailed, "call", `{"nodeId":"call","error":{"code":"child_failed","message":"m","details":{"childStatus":"cancelled"}}}`)}, wire.StatusCancelled, wire.StatusRunning},
		"tried":     {[]wire.Draft{there, of(wire.EventNodeRetried, "call", `{"nodeId":"call","attempt":1,"delayMs":9,"lastError":{"code":"child_failed","message":"m","details":{"childStatus":"failed"}}}`)}, wire.StatusFailed, wire.StatusRunning},
		"cut":       {[]wire.Draft{there, of(wire.EventNodeCancelled, "call", `{"nodeId":"call","reason":"cancelled"}`)}, wire.StatusCancelled, wire.StatusRunning},
		"let be":    {[]wire.Draft{there, of(wire.EventNodeCancelled, "call", `{"nodeId":"call","reason":"`+runstate.ReasonLetBe+`"}`)}, wire.StatusRunning, wire.StatusRunning},
	} {
		st := family(t, tc.events...)
		require.Equal(t, []runstate.ChildRun{{RunID: "c", Status: tc.child, WorkflowID: "k", NodeID: "call"}}, st.Snapshot().ChildRuns, name)
		require.Equal(t, tc.run, st.Status, name)
	}
}

// OpenWOP host contract §3.1: the node suspended first determines the status.
func TestChild_WaitsTogetherWithAGate(t *testing.T) {
	t.Parallel()
	gate := []wire.Draft{
		of(wire.EventNodeStarted, "gate", `{"nodeId":"gate","typeId":"core.approvalGate"}`),
		of(wire.EventNodeSuspended, "gate", `{"nodeId":"gate","interruptId":"g","kind":"approval"}`),
		of(wire.EventInterruptRequested, "gate", `{"runId":"p","nodeId":"gate","interruptId":"g","kind":"approval","key":"k","data":{"title":"t","actions":["accept"],"artifactId":"a","artifactType":"x"},"requestedAt":"2026-05-01T12:00:05.000Z"}`),
	}
	there, suspended := of(wire.EventNodeDispatched, "call", isThere), of(wire.EventNodeSuspended, "call", waits)
	first := family(t, append([]wire.Draft{there, suspended}, gate...)...)
	require.Equal(t, wire.StatusWaitingInput, first.Status)
	require.Equal(t, "call", first.Snapshot().CurrentNodeID)
	require.Equal(t, "gate", first.Snapshot().Interrupt.NodeID, "the run's own question")
	second := family(t, append(append([]wire.Draft{there}, gate...), suspended)...)
	require.Equal(t, wire.StatusWaitingApproval, second.Status)
	require.Equal(t, "gate", second.Snapshot().CurrentNodeID)
}

func TestRemember_ACancellationSetsTheStatus(t *testing.T) {
	t.Parallel()
	st := family(t, of(wire.EventNodeDispatched, "call", isThere))
	st.Remember(wire.ParseNote(wire.Note{Cancel: &wire.CancelNote{Reason: "enough"}}.JSON()))
	require.Equal(t, wire.StatusCancelling, st.Status)
	require.Equal(t, "enough", st.Cancelling.Reason)
	_, _, runs := st.Deadline(time.Hour)
	require.False(t, runs, "no time counts while cancelling")
}
