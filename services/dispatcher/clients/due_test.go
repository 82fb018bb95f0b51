package clients_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/engine/timers"
)

// timerIndex returns two timers and records the request.
type timerIndex struct {
	eventlogv1.EventLogClient
	asked *eventlogv1.ListDueTimersRequest
}

func (e *timerIndex) ListDueTimers(_ context.Context, req *eventlogv1.ListDueTimersRequest, _ ...grpc.CallOption) (*eventlogv1.ListDueTimersResponse, error) {
	e.asked = req
	return &eventlogv1.ListDueTimersResponse{Timers: []*eventlogv1.DueTimer{
		{Tenant: "acme", WorkflowId: "wf", RunId: "run_1", DueUnixMs: 7},
		{Tenant: "beta", WorkflowId: "wf", RunId: "run_2", DueUnixMs: 8},
	}}, nil
}

func place(d *eventlogv1.DueTimer) string {
	return fmt.Sprintf("%s %s %d", d.GetTenant(), d.GetRunId(), d.GetDueUnixMs())
}

// The next page starts after the last timer of the previous one.
func TestDue_GoesOnBehindTheTimerThatWasReadLast(t *testing.T) {
	t.Parallel()
	log := &timerIndex{}
	got, err := clients.Index{Client: log}.Due(t.Context(), time.UnixMilli(9), timers.DueRun{}, 2)
	require.NoError(t, err)
	require.Equal(t, []timers.DueRun{
		{Run: subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}, DueMs: 7},
		{Run: subject.Run{Tenant: "beta", WorkflowID: "wf", RunID: "run_2"}, DueMs: 8},
	}, got)
	require.EqualValues(t, 9, log.asked.GetBeforeUnixMs())
	require.EqualValues(t, 2, log.asked.GetLimit())
	require.Equal(t, "  0", place(log.asked.GetAfter()), "from the first on")
	_, err = clients.Index{Client: log}.Due(t.Context(), time.UnixMilli(9), got[1], 2)
	require.NoError(t, err)
	require.Equal(t, "beta run_2 8", place(log.asked.GetAfter()))
}

// owned returns two runs and records the request.
type owned struct {
	eventlogv1.EventLogClient
	asked *eventlogv1.ListOwnedRunsRequest
}

func (o *owned) ListOwnedRuns(_ context.Context, req *eventlogv1.ListOwnedRunsRequest, _ ...grpc.CallOption) (*eventlogv1.ListOwnedRunsResponse, error) {
	o.asked = req
	return &eventlogv1.ListOwnedRunsResponse{Position: 12, Runs: []*eventlogv1.OwnedRun{
		{Tenant: "acme", WorkflowId: "wf", RunId: "run_1", Owner: &eventlogv1.RunOwner{Process: "d1", Epoch: 3}},
		{Tenant: "beta", WorkflowId: "wf", RunId: "run_2"},
	}}, nil
}

func TestOwned_ContinuesAfterTheLastRun(t *testing.T) {
	t.Parallel()
	log := &owned{}
	got, upTo, err := clients.Index{Client: log}.Owned(t.Context(), "d1", clients.OwnedRun{}, 2, 11)
	require.NoError(t, err)
	require.EqualValues(t, 12, upTo)
	require.Equal(t, []clients.OwnedRun{
		{Run: subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}, Epoch: 3},
		{Run: subject.Run{Tenant: "beta", WorkflowID: "wf", RunID: "run_2"}},
	}, got)
	require.Equal(t, "d1", log.asked.GetProcess())
	require.EqualValues(t, 11, log.asked.GetAtLeast())
	require.EqualValues(t, 2, log.asked.GetLimit())
	_, _, err = clients.Index{Client: log}.Owned(t.Context(), "d1", got[1], 2, 0)
	require.NoError(t, err)
	require.Equal(t, "beta run_2", log.asked.GetAfter().GetTenant()+" "+log.asked.GetAfter().GetRunId())
}
