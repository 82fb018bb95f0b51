package eventlog_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
	"waybill.dev/waybill/services/eventlog/logtest"
)

func (r *rig) view(t *testing.T, runID string, at *int32) *view.Run {
	t.Helper()
	res, err := r.ViewRun(within(t), &eventlogv1.ViewRunRequest{Tenant: logtest.Tenant, RunId: runID, At: at})
	require.NoError(t, err)
	v := &view.Run{}
	require.NoError(t, json.Unmarshal(res.GetView(), v))
	return v
}

func TestViewRun_IsTheFoldOfTheEventsSoFar(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	require.Equal(t, -1, r.view(t, "run-1", nil).Sequence)
	w.Step(wire.Draft{Type: wire.EventRunStarted})
	w.Step(logtest.Node("a")...)
	expected := func(until int) *view.Run {
		return fold.Of("run-1", w.Record.CreatedAt, w.Events[:until+1])
	}
	head := len(w.Events) - 1
	require.Equal(t, expected(head), r.view(t, "run-1", nil))
	require.Len(t, r.view(t, "run-1", nil).Timeline.Lanes, 1)

	w.Step(logtest.Node("b")...)
	w.End(wire.Draft{Type: wire.EventRunCompleted})
	last := len(w.Events) - 1
	require.Equal(t, expected(last), r.view(t, "run-1", nil), "a cached view is extended")
	require.Equal(t, expected(head), r.view(t, "run-1", proto.Int32(int32(head))))
	require.Equal(t, expected(0), r.view(t, "run-1", proto.Int32(0)))
	require.Equal(t, expected(last), r.view(t, "run-1", proto.Int32(10_000)))
}

func TestViewRun_FindsNoRunOfAnotherTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(t, "run-1")
	for _, req := range []*eventlogv1.ViewRunRequest{
		{Tenant: "another", RunId: "run-1"},
		{Tenant: logtest.Tenant, RunId: "run-2"},
		{Tenant: logtest.Tenant, RunId: "run.1"},
		{Tenant: "another", RunId: "run-1", At: proto.Int32(0)},
	} {
		_, err := r.ViewRun(within(t), req)
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%v", req)
	}
}

// A run longer than a page of the store is folded to its end.
func TestViewRun_ReadsPageAfterPage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(wire.Draft{Type: wire.EventRunStarted})
	for range 3 {
		var many []wire.Draft
		for range 500 {
			many = append(many, logtest.Node("a")...)
		}
		w.Step(many...)
	}
	require.Equal(t, len(w.Events)-1, r.view(t, "run-1", nil).Sequence)
	require.Equal(t, 1200, r.view(t, "run-1", proto.Int32(1200)).Sequence)
}
