package eventlog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// decided is the event of an answer with its details.
func decided(runID, nodeID, more string) wire.Draft {
	id := interrupt.Origin{RunID: runID, NodeID: nodeID}.InterruptID()
	return wire.Draft{
		Type:    wire.EventInterruptResolved,
		NodeID:  nodeID,
		Payload: json.RawMessage(`{"nodeId":"` + nodeID + `","interruptId":"` + id + `",` + more + `}`),
	}
}

// A question that was answered is listed under its day with who answered what and when, after its run
// has ended, too.
func TestListInterrupts_ListsTheAnswersOfADay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	day := logtest.Epoch.Format("2006-01-02")
	list := func(req *eventlogv1.ListInterruptsRequest) []*eventlogv1.OpenInterrupt {
		req.Tenant = max(req.GetTenant(), logtest.Tenant)
		resp, err := r.ListInterrupts(within(t), req)
		require.NoError(t, err)
		return resp.GetInterrupts()
	}
	w := created(t, r, "run-1", 1, func(*wire.RunRecord) {})
	w.Step(append(append(append([]wire.Draft{logtest.RunStarted}, asks(t, "run-1", "a")...), asks(t, "run-1", "b")...), asks(t, "run-1", "c")...)...)
	require.Empty(t, list(&eventlogv1.ListInterruptsRequest{AnsweredOn: day}), "nothing is answered")

	w.Step(decided("run-1", "a", `"resumeValue":{"action":"accept"},"resolvedBy":"ada","resolvedAt":"2026-03-01T12:00:01.000Z"`))
	w.Step(decided("run-1", "b", `"outcome":"rejected","reason":"timeout"`))
	w.End(wire.Draft{Type: wire.EventRunCancelled, Payload: json.RawMessage(`{}`)})
	got := list(&eventlogv1.ListInterruptsRequest{AnsweredOn: day})
	require.Len(t, got, 2, "an open question is not answered")
	require.Equal(t, "timeout", got[0].GetAnswer().GetOutcome(), "the latest is first")
	require.Empty(t, got[0].GetAnswer().GetBy())
	require.NotEmpty(t, got[0].GetAnswer().GetAt(), "the time of the event")
	require.Empty(t, got[0].GetAnswer().GetValue())
	require.Equal(t, "accept", got[1].GetAnswer().GetOutcome())
	require.Equal(t, "ada", got[1].GetAnswer().GetBy())
	require.Equal(t, "2026-03-01T12:00:01.000Z", got[1].GetAnswer().GetAt())
	require.JSONEq(t, `{"action":"accept"}`, string(got[1].GetAnswer().GetValue()))
	require.Equal(t, "cancelled", got[1].GetStatus())
	var shown struct {
		Payload struct{ Data struct{ Title string } }
	}
	require.NoError(t, json.Unmarshal(got[1].GetInterrupt(), &shown))
	require.Equal(t, "T", shown.Payload.Data.Title, "the question itself")

	require.Empty(t, list(&eventlogv1.ListInterruptsRequest{AnsweredOn: logtest.Epoch.AddDate(0, 0, 1).Format("2006-01-02")}))
	require.Empty(t, list(&eventlogv1.ListInterruptsRequest{AnsweredOn: day, Kind: "clarification"}))
	require.Empty(t, list(&eventlogv1.ListInterruptsRequest{AnsweredOn: day, Tenant: "other"}))
	for _, wrong := range []string{"today", "2026-3-1", "2026-02-30", day + "T00:00:00Z"} {
		_, err := r.ListInterrupts(within(t), &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, AnsweredOn: wrong})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), wrong)
	}
}

// A branch copies the answers of its source; only the source was answered.
func TestListInterrupts_ABranchHasNoAnswersOfItsSource(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	day := logtest.Epoch.Format("2006-01-02")
	copied := append(append([]wire.Draft{logtest.RunStarted}, asks(t, "run-1", "a")...), decided("run-1", "a", `"resumeValue":{}`))
	w := created(t, r, "run-1", 1, func(rec *wire.RunRecord) {
		rec.Fork = &wire.Fork{SourceRunID: "run-0", Mode: wire.ForkBranch, FromSeq: len(copied)}
	})
	w.Step(copied...)
	list := func() []*eventlogv1.OpenInterrupt {
		resp, err := r.ListInterrupts(within(t), &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, AnsweredOn: day})
		require.NoError(t, err)
		return resp.GetInterrupts()
	}
	require.Empty(t, list())
	w.Step(append(asks(t, "run-1", "b"), decided("run-1", "b", `"resumeValue":{"action":"accept"}`))...)
	require.Len(t, list(), 1, "its own")
}

// Questions are counted for the tenant and for one responder, until they are answered.
func TestCountInterrupts_CountsWhatTheResponderMayAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	count := func(req *eventlogv1.CountInterruptsRequest) [3]int64 {
		resp, err := r.CountInterrupts(within(t), req)
		require.NoError(t, err)
		require.True(t, resp.GetComplete())
		return [3]int64{resp.GetOpen(), resp.GetAnswerable(), resp.GetDueSoon()}
	}
	mine := &eventlogv1.CountInterruptsRequest{Tenant: logtest.Tenant, Principal: "k", Groups: []string{"ops"}}
	require.Equal(t, [3]int64{0, 0, 0}, count(mine))
	one := created(t, r, "run-1", 1, func(*wire.RunRecord) {})
	one.Step(append(append([]wire.Draft{logtest.RunStarted}, asks(t, "run-1", "a")...),
		asksWith(t, "run-1", "b", `{"title":"T","actions":["accept"],"approverGroupRefs":["hr"]}`)...)...)
	two := created(t, r, "run-2", 2, func(*wire.RunRecord) {})
	two.Step(append([]wire.Draft{logtest.RunStarted}, asksWith(t, "run-2", "a", `{"title":"T","actions":["accept"],"approverGroupRefs":["ops"],"timeoutSec":60}`)...)...)
	require.Equal(t, [3]int64{3, 2, 1}, count(mine), "a deadline that has passed is due, too")
	require.Equal(t, [3]int64{3, 1, 0}, count(&eventlogv1.CountInterruptsRequest{Tenant: logtest.Tenant, Principal: "k"}))
	require.Equal(t, [3]int64{0, 0, 0}, count(&eventlogv1.CountInterruptsRequest{Tenant: "other", Principal: "k"}))
	one.Step(answered("run-1", "a"))
	require.Equal(t, [3]int64{2, 1, 1}, count(mine))
}

// A page ends when it has read much of the log, and the next one continues after it.
func TestListInterrupts_EndsAPageOfAnswersThatReadMuch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, id := range []string{"run-1", "run-2"} {
		w := created(t, r, id, i, func(*wire.RunRecord) {})
		w.Step(append([]wire.Draft{logtest.RunStarted}, asks(t, id, "a")...)...)
		for range 5 {
			w.Step(wire.Draft{Type: wire.EventLogAppended, Payload: json.RawMessage(`{"message":"` + strings.Repeat("x", 500<<10) + `"}`)})
		}
		w.Step(decided(id, "a", `"resumeValue":{"action":"accept"}`))
	}
	req := &eventlogv1.ListInterruptsRequest{Tenant: logtest.Tenant, AnsweredOn: logtest.Epoch.Format("2006-01-02")}
	for _, run := range []string{"run-2", "run-1"} {
		resp, err := r.ListInterrupts(within(t), req)
		require.NoError(t, err)
		require.Len(t, resp.GetInterrupts(), 1)
		require.Equal(t, run, resp.GetInterrupts()[0].GetRunId())
		req.Cursor = resp.GetNextCursor()
	}
	require.Empty(t, req.GetCursor())
}
