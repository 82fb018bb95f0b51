package eventlog_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// watch opens a stream and waits until it is active.
func (r *rig) watch(t testing.TB, ctx context.Context, tenant string) grpc.ServerStreamingClient[eventlogv1.WatchRunsResponse] {
	t.Helper()
	s, err := r.WatchRuns(ctx, &eventlogv1.WatchRunsRequest{Tenant: tenant})
	require.NoError(t, err)
	md, err := s.Header()
	require.NoError(t, err)
	require.NotNil(t, md)
	return s
}

// until receives rows until a run has a status.
func until(t testing.TB, s grpc.ServerStreamingClient[eventlogv1.WatchRunsResponse], runID, status string) *eventlogv1.RunSummary {
	t.Helper()
	for {
		res, err := s.Recv()
		require.NoError(t, err)
		if res.GetRun().GetRunId() == runID && res.GetRun().GetStatus() == status {
			return res.GetRun()
		}
	}
}

// C2b, on every replica: each of them follows the log.
func TestWatchRuns_ReportsEachChangeOnEveryReplica(t *testing.T) {
	t.Parallel()
	log := memory.New()
	one := openRig(t, log, filepath.Join(t.TempDir(), "one.db"), eventlog.DefaultConfig())
	two := openRig(t, log, filepath.Join(t.TempDir(), "two.db"), eventlog.DefaultConfig())
	ctx := within(t)
	var streams []grpc.ServerStreamingClient[eventlogv1.WatchRunsResponse]
	for _, r := range []*rig{one, two} {
		streams = append(streams, r.watch(t, ctx, logtest.Tenant))
	}
	w := one.begin(t, "run-1")
	for _, s := range streams {
		require.Equal(t, "flow", until(t, s, "run-1", "pending").GetWorkflowId())
	}
	w.Step(logtest.RunStarted)
	for _, s := range streams {
		until(t, s, "run-1", "running")
	}
	w.End(logtest.RunFailed)
	for _, s := range streams {
		require.Equal(t, "run_timeout", until(t, s, "run-1", "failed").GetErrorCode())
	}
}

func TestWatchRuns_ShowsNoTenantTheRunsOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := within(t)
	own, foreign := r.watch(t, ctx, logtest.Tenant), r.watch(t, ctx, "beta")
	r.begin(t, "run-1").End(logtest.RunStarted, logtest.RunCompleted)
	until(t, own, "run-1", "completed")
	rec := logtest.Record("run-2")
	rec.Owner.Tenant = "beta"
	logtest.Begin(t, r.log, rec)
	res, err := foreign.Recv()
	require.NoError(t, err)
	require.Equal(t, "run-2", res.GetRun().GetRunId(), "the first row is its own")

	s, err := r.WatchRuns(ctx, &eventlogv1.WatchRunsRequest{Tenant: "a.>"})
	require.NoError(t, err)
	_, err = s.Recv()
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

func TestWatchRuns_EndsWithTheService(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.watch(t, within(t), logtest.Tenant)
	r.stop()
	_, err := s.Recv()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}
