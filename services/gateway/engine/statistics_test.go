package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

func (*eventLog) SummarizeWorkflows(_ context.Context, r *eventlogv1.SummarizeWorkflowsRequest, _ ...grpc.CallOption) (*eventlogv1.SummarizeWorkflowsResponse, error) {
	return &eventlogv1.SummarizeWorkflowsResponse{Workflows: []*eventlogv1.WorkflowStatistics{{
		WorkflowId: r.GetWorkflowIds()[0], Runs: 4, More: true, Completed: 2, Failed: 1, Cancelled: 1,
		P50Ms: proto.Int64(5), P95Ms: proto.Int64(9), Priced: 2, CostUsd: 0.5,
		Latest: []*eventlogv1.RunSummary{{RunId: "of " + r.GetTenant(), Status: "failed", CreatedAt: "1", CompletedAt: "2"}},
	}}}, nil
}

func TestListWorkflowStatistics_IsForTheCallersTenant(t *testing.T) {
	t.Parallel()
	got, err := newRig(t).ListWorkflowStatistics(as(t, liveKey), &hostv1.ListWorkflowStatisticsRequest{WorkflowId: []string{"wf"}})
	require.NoError(t, err)
	want := &hostv1.ListWorkflowStatisticsResponse{Workflows: []*hostv1.WorkflowStatistics{{
		WorkflowId: "wf", Runs: 4, More: true, Completed: 2, Failed: 1, Cancelled: 1,
		P50Ms: proto.Int64(5), P95Ms: proto.Int64(9), Priced: 2, CostUsd: 0.5,
		Latest: []*hostv1.RunSummary{{RunId: "of acme", Status: "failed", CreatedAt: "1", CompletedAt: proto.String("2")}},
	}}}
	require.True(t, proto.Equal(want, got), "%v", got)
}

func TestListWorkflowStatistics_BoundsItsWorkflows(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{nil, {""}, {"wf", ""}, make([]string, 21)} {
		_, err := newRig(t).ListWorkflowStatistics(as(t, liveKey), &hostv1.ListWorkflowStatisticsRequest{WorkflowId: ids})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%q", ids)
		require.ErrorContains(t, err, "1 to 20")
	}
}

func (*dispatcher) ListWorkflowVersions(_ context.Context, r *dispatcherv1.ListWorkflowVersionsRequest, _ ...grpc.CallOption) (*dispatcherv1.ListWorkflowVersionsResponse, error) {
	out := &dispatcherv1.ListWorkflowVersionsResponse{
		Tenant:   r.GetTenant(),
		Versions: []*dispatcherv1.WorkflowVersion{{Version: "2", Digest: "d", Current: true}},
	}
	if r.GetWorkflowId() == "of-a-file" {
		out.Tenant, out.Source, out.Warnings = "", "/etc/flows/a.json", []string{"w"}
	}
	return out, nil
}

func TestListWorkflowVersions_NamesTheOriginWithoutTheFolder(t *testing.T) {
	t.Parallel()
	versions := []*hostv1.WorkflowVersion{{Version: "2", Digest: "d", Current: true}}
	for _, want := range []*hostv1.ListWorkflowVersionsResponse{
		{WorkflowId: "own", Origin: "tenant", Versions: versions},
		{WorkflowId: "of-a-file", Origin: "shared", File: proto.String("a.json"), Warnings: []string{"w"}, Versions: versions},
	} {
		got, err := newRig(t).ListWorkflowVersions(as(t, liveKey), &hostv1.ListWorkflowVersionsRequest{WorkflowId: want.GetWorkflowId()})
		require.NoError(t, err)
		require.True(t, proto.Equal(want, got), "%v", got)
	}
}

func TestGetRun_NamesTheDefinitionThatTheRunExecutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.get = func(*eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		return &eventlogv1.GetRunResponse{Snapshot: []byte(`{"runId":"run_1"}`), WorkflowVersion: "1.2", WorkflowDigest: "sha256:00"}, nil
	}
	res, err := r.GetRun(as(t, liveKey), &openwopv1.GetRunRequest{RunId: "run_1"})
	require.NoError(t, err)
	require.JSONEq(t, `{"runId":"run_1","waybill":{"workflowVersion":"1.2","workflowDigest":"sha256:00"}}`, string(res.GetSnapshot().GetJson()))
}

func (*eventLog) GetStatistics(_ context.Context, r *eventlogv1.GetStatisticsRequest, _ ...grpc.CallOption) (*eventlogv1.GetStatisticsResponse, error) {
	return &eventlogv1.GetStatisticsResponse{Statistics: &hostv1.GetStatisticsResponse{
		Since: r.GetSince(), Until: r.GetUntil(),
		Workflows: []*hostv1.WorkflowTotals{{WorkflowId: r.GetWorkflowId() + " of " + r.GetTenant()}},
	}}, nil
}

func TestGetStatistics_IsForTheCallersTenantAndOneDayByDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got, err := r.GetStatistics(as(t, liveKey), &hostv1.GetStatisticsRequest{WorkflowId: proto.String("wf")})
	require.NoError(t, err)
	require.Equal(t, "wf of acme", got.GetWorkflows()[0].GetWorkflowId())
	since, err := time.Parse(time.RFC3339, got.GetSince())
	require.NoError(t, err)
	until, err := time.Parse(time.RFC3339, got.GetUntil())
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, until.Sub(since))

	got, err = r.GetStatistics(as(t, liveKey), &hostv1.GetStatisticsRequest{Until: proto.String("2026-03-01T14:00:00+02:00")})
	require.NoError(t, err)
	since, err = time.Parse(time.RFC3339, got.GetSince())
	require.NoError(t, err)
	require.True(t, since.Equal(time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)), "%s", since)

	for _, req := range []*hostv1.GetStatisticsRequest{{Until: proto.String("2h")}, {Until: proto.String("")}, {WorkflowId: proto.String("")}} {
		_, err := r.GetStatistics(as(t, liveKey), req)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", req)
	}
}

func (*eventLog) ListTenantStatistics(_ context.Context, r *eventlogv1.ListTenantStatisticsRequest, _ ...grpc.CallOption) (*eventlogv1.ListTenantStatisticsResponse, error) {
	return &eventlogv1.ListTenantStatisticsResponse{Statistics: &hostv1.ListTenantStatisticsResponse{
		Since: r.GetSince(), Until: r.GetUntil(), Tenants: []*hostv1.TenantTotals{{Tenant: "asked of " + r.GetTenant()}},
	}}, nil
}

func TestListTenantStatistics_NamesOtherTenantsToOperatorsOnly(t *testing.T) {
	t.Parallel()
	for key, tenant := range map[string]string{liveKey: "acme", operatorKey: ""} {
		got, err := newRig(t).ListTenantStatistics(as(t, key), &hostv1.ListTenantStatisticsRequest{})
		require.NoError(t, err)
		require.Equal(t, "asked of "+tenant, got.GetTenants()[0].GetTenant())
	}
	_, err := newRig(t).ListTenantStatistics(as(t, operatorKey), &hostv1.ListTenantStatisticsRequest{Until: proto.String("2h")})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}
