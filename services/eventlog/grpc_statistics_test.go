package eventlog_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// cost is an event of a model call; an empty cost is an unknown one.
func cost(usd string) wire.Draft {
	if usd != "" {
		usd = `,"costEstimateUsd":` + usd
	}
	return wire.Draft{
		Type: wire.EventProviderUsage, NodeID: "n",
		Payload: json.RawMessage(`{"provider":"p","model":"m","inputTokens":1,"outputTokens":1` + usd + `}`),
	}
}

// ran writes a run that is created at a second after the epoch and whose last event is its ms-th.
func (r *rig) ran(t testing.TB, workflow string, second, ms int, end wire.Draft, steps ...wire.Draft) {
	t.Helper()
	rec := logtest.Record(fmt.Sprintf("%s-%04d", workflow, second))
	rec.WorkflowID = workflow
	rec.CreatedAt = wire.FormatTime(logtest.Epoch.Add(time.Duration(second) * time.Second))
	w := logtest.Begin(t, r.log, rec)
	all := append([]wire.Draft{logtest.RunStarted}, steps...)
	for len(all) < ms {
		all = append(all, logtest.Log("more"))
	}
	w.Step(all...)
	if end.Type != "" {
		w.End(end)
	}
}

func (r *rig) summarize(t testing.TB, tenant string, ids ...string) []*eventlogv1.WorkflowStatistics {
	t.Helper()
	res, err := r.SummarizeWorkflows(within(t), &eventlogv1.SummarizeWorkflowsRequest{Tenant: tenant, WorkflowIds: ids})
	require.NoError(t, err)
	return res.GetWorkflows()
}

func TestSummarizeWorkflows_CountsTheRunsOfEachWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ran(t, "flow", 1, 10, logtest.RunCompleted, cost("0.5"))
	r.ran(t, "flow", 2, 20, logtest.RunCompleted, cost("0.25"), cost("0.25"))
	r.ran(t, "flow", 3, 500, logtest.RunFailed)
	r.ran(t, "flow", 4, 1, wire.Draft{}, cost("9")) // active: its cost may grow
	r.ran(t, "flow", 5, 40, logtest.RunCompleted, cost(""))
	r.ran(t, "other", 6, 1, logtest.RunFailed)

	got := r.summarize(t, logtest.Tenant, "other", "flow", "none")
	require.Len(t, got, 3)
	require.Equal(t, []string{"other", "flow", "none"}, []string{got[0].GetWorkflowId(), got[1].GetWorkflowId(), got[2].GetWorkflowId()})
	require.Nil(t, got[0].P95Ms, "no run has completed")
	require.Equal(t, int32(1), got[0].GetFailed())
	require.Zero(t, got[2].GetRuns())

	flow := got[1]
	require.Equal(t, int32(5), flow.GetRuns())
	require.Equal(t, []int32{3, 1, 0}, []int32{flow.GetCompleted(), flow.GetFailed(), flow.GetCancelled()})
	require.False(t, flow.GetMore())
	require.Equal(t, []int64{20, 40}, []int64{flow.GetP50Ms(), flow.GetP95Ms()}, "failed runs do not count")
	require.Equal(t, int32(3), flow.GetPriced(), "the failed run called no model, one has no known cost")
	require.InDelta(t, 1.0, flow.GetCostUsd(), 1e-9)
	require.Equal(t, "flow-0005", flow.GetLatest()[0].GetRunId())

	require.Zero(t, r.summarize(t, "globex", "flow")[0].GetRuns(), "of another tenant")
	require.Zero(t, r.summarize(t, logtest.Tenant, "")[0].GetRuns())
}

// The work for a workflow does not grow with its runs.
func TestSummarizeWorkflows_IsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const extra = 3
	for i := range 200 + extra {
		r.ran(t, "flow", i, 1, logtest.RunCompleted, cost("1"))
	}
	flow := r.summarize(t, logtest.Tenant, "flow")[0]
	require.Equal(t, int32(200), flow.GetRuns())
	require.True(t, flow.GetMore())
	require.Len(t, flow.GetLatest(), 10)
	require.Equal(t, int32(200), flow.GetPriced())
	require.InDelta(t, 200, flow.GetCostUsd(), 1e-9)

	_, err := r.SummarizeWorkflows(within(t), &eventlogv1.SummarizeWorkflowsRequest{
		Tenant: logtest.Tenant, WorkflowIds: make([]string, 21),
	})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

func TestGetRun_NamesTheDefinition(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(t, "run-1").Step(logtest.RunStarted)
	got, err := r.get(t, "run-1")
	require.NoError(t, err)
	require.Equal(t, []string{"1", "sha256:00"}, []string{got.GetWorkflowVersion(), got.GetWorkflowDigest()})
}
