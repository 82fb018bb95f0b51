package remote_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/remote"
	"waybill.dev/waybill/services/dispatcher/sleep"
)

// timers answers with two, and keeps what it was asked.
type timers struct {
	eventlogv1.EventLogClient
	asked *eventlogv1.ListDueTimersRequest
}

func (e *timers) ListDueTimers(_ context.Context, req *eventlogv1.ListDueTimersRequest, _ ...grpc.CallOption) (*eventlogv1.ListDueTimersResponse, error) {
	e.asked = req
	return &eventlogv1.ListDueTimersResponse{Timers: []*eventlogv1.DueTimer{
		{Tenant: "acme", WorkflowId: "wf", RunId: "run_1", DueUnixMs: 7}, {Tenant: "beta", WorkflowId: "wf", RunId: "run_2", DueUnixMs: 8},
	}}, nil
}

func place(d *eventlogv1.DueTimer) string {
	return fmt.Sprintf("%s %s %d", d.GetTenant(), d.GetRunId(), d.GetDueUnixMs())
}

// What the last answer ended with is where the next one goes on.
func TestDue_GoesOnBehindTheTimerThatWasReadLast(t *testing.T) {
	t.Parallel()
	log := &timers{}
	got, err := remote.Index{Client: log}.Due(t.Context(), time.UnixMilli(9), sleep.Timer{}, 2)
	require.NoError(t, err)
	require.Equal(t, []sleep.Timer{
		{Run: subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}, DueMs: 7},
		{Run: subject.Run{Tenant: "beta", WorkflowID: "wf", RunID: "run_2"}, DueMs: 8},
	}, got)
	require.EqualValues(t, 9, log.asked.GetBeforeUnixMs())
	require.EqualValues(t, 2, log.asked.GetLimit())
	require.Equal(t, "  0", place(log.asked.GetAfter()), "from the first on")
	_, err = remote.Index{Client: log}.Due(t.Context(), time.UnixMilli(9), got[1], 2)
	require.NoError(t, err)
	require.Equal(t, "beta run_2 8", place(log.asked.GetAfter()))
}
