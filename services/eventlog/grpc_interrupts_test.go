package eventlog_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// asks returns the events of a gate that opens a question in a run.
func asks(t *testing.T, runID, nodeID string) []wire.Draft {
	t.Helper()
	return asksWith(t, runID, nodeID, `{"title":"T","actions":["accept"]}`)
}

// asksWith returns those of a gate with a config.
func asksWith(t *testing.T, runID, nodeID, config string) []wire.Draft {
	t.Helper()
	at := interrupt.Origin{RunID: runID, NodeID: nodeID}
	r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(config))
	require.Empty(t, wrong)
	_, events := interrupt.Open(at, r, logtest.Epoch, "")
	started := wire.Draft{
		Type:    wire.EventNodeStarted,
		NodeID:  nodeID,
		Payload: json.RawMessage(`{"nodeId":"` + nodeID + `","typeId":"core.approvalGate","attempt":0}`),
	}
	return append([]wire.Draft{started}, events...)
}

// answered are the events of its answer.
func answered(runID, nodeID string) wire.Draft {
	id := interrupt.Origin{RunID: runID, NodeID: nodeID}.InterruptID()
	return wire.Draft{
		Type:    wire.EventInterruptResolved,
		NodeID:  nodeID,
		Payload: json.RawMessage(`{"nodeId":"` + nodeID + `","interruptId":"` + id + `","resumeValue":{}}`),
	}
}

// open lists all pages as "run node".
func open(t *testing.T, r *rig, req *eventlogv1.ListInterruptsRequest) (out []string) {
	t.Helper()
	for {
		resp, err := r.ListInterrupts(within(t), req)
		require.NoError(t, err)
		for _, i := range resp.GetInterrupts() {
			var shown struct{ Kind, NodeID, InterruptID string }
			require.NoError(t, json.Unmarshal(i.GetInterrupt(), &shown))
			require.Equal(t, "approval", shown.Kind)
			require.NotEmpty(t, shown.InterruptID)
			out = append(out, i.GetRunId()+" "+shown.NodeID)
		}
		if resp.GetNextCursor() == "" {
			return out
		}
		req.Cursor = resp.GetNextCursor()
	}
}

// Every open question is listed immediately, also while other branches run, and is removed once it
// is answered or its run has ended.
func TestListInterrupts_SeesWhatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all := func() []string { return open(t, r, &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant}) }
	quiet := created(t, r, "run-0", 0, func(*wire.RunRecord) {})
	quiet.Step(logtest.RunStarted)
	one := created(t, r, "run-1", 1, func(*wire.RunRecord) {})
	one.Step(append([]wire.Draft{logtest.RunStarted}, asks(t, "run-1", "a")...)...)
	require.Equal(t, []string{"run-1 a"}, all())
	two := created(t, r, "run-2", 2, func(*wire.RunRecord) {})
	two.Step(append([]wire.Draft{
		logtest.RunStarted,
		{Type: wire.EventNodeStarted, NodeID: "busy", Payload: json.RawMessage(`{"nodeId":"busy","typeId":"x"}`)},
	}, append(asks(t, "run-2", "a"), asks(t, "run-2", "b")...)...)...)
	require.Equal(t, []string{"run-2 a", "run-2 b", "run-1 a"}, all(), "also of a run that is running")
	require.Empty(t, open(t, r, &eventlogv1.ListInterruptsRequest{Tenant: "other"}))

	two.Step(answered("run-2", "a"))
	require.Equal(t, []string{"run-2 b", "run-1 a"}, all())
	two.End(wire.Draft{Type: wire.EventRunCancelled, Payload: json.RawMessage(`{}`)})
	require.Equal(t, []string{"run-1 a"}, all())
	one.Step(answered("run-1", "a"))
	require.Empty(t, all())
}

func TestListInterrupts_PagesByRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var want []string
	for i := range 5 {
		id := fmt.Sprint("run-", i)
		w := created(t, r, id, i, func(*wire.RunRecord) {})
		w.Step(append(append([]wire.Draft{logtest.RunStarted}, asks(t, id, "a")...), asks(t, id, "b")...)...)
		want = append([]string{id + " a", id + " b"}, want...)
	}
	for limit := range int32(7) {
		require.Equal(t, want, open(t, r, &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, Limit: limit}), "limit %d", limit)
	}
	resp, err := r.ListInterrupts(within(t), &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, Limit: 1})
	require.NoError(t, err)
	require.Len(t, resp.GetInterrupts(), 2, "those of one run are together")
	require.Empty(t, open(t, r, &eventlogv1.ListInterruptsRequest{
		Tenant: logtest.Tenant,
		Kind:   "clarification",
		Limit:  2,
	}))
	require.Equal(t, want, open(t, r, &eventlogv1.ListInterruptsRequest{
		Tenant:     logtest.Tenant,
		Kind:       "approval",
		WorkflowId: "flow",
	}))
	require.Empty(t, open(t, r, &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, WorkflowId: "flow-2"}))
	_, err = r.ListInterrupts(within(t), &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, Cursor: "?"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}
