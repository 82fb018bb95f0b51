package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

func unmarshal(t testing.TB, b []byte, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(b, v), "%s", b)
}

func TestCreateRun_DerivesTheIDFromTenantAndKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req := &openwopv1.CreateRunRequest{WorkflowId: "wf"}
	id := func(key, idem string) string {
		res, err := r.CreateRun(as(t, key, engine.MetaIdempotencyKey, idem), req)
		require.NoError(t, err)
		return res.GetRunId()
	}
	first := id(liveKey, "k1")
	require.Equal(t, first, id(liveKey, "k1"))
	require.Equal(t, first, id(testKey, "k1"), "the tenant counts, not the credential")
	require.NotEqual(t, first, id(liveKey, "k2"))
	require.NotEqual(t, first, id(betaKey, "k1"))
	require.Equal(t, r.dispatcher.starts[0].GetRequestDigest(), r.dispatcher.starts[1].GetRequestDigest())
	require.NotEmpty(t, r.dispatcher.starts[0].GetRequestDigest())
}

func TestCreateRun_DigestsWhatTheRequestMeans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	digest := func(req *openwopv1.CreateRunRequest) string {
		_, err := r.CreateRun(as(t, liveKey, engine.MetaIdempotencyKey, "k"), req)
		require.NoError(t, err)
		return r.dispatcher.starts[len(r.dispatcher.starts)-1].GetRequestDigest()
	}
	base := digest(&openwopv1.CreateRunRequest{WorkflowId: "wf", Inputs: doc(`{"a":1,"b":2.0}`)})
	require.Equal(t, base, digest(&openwopv1.CreateRunRequest{WorkflowId: "wf", Inputs: doc(`{ "b":2, "a":1.0 }`)}))
	require.NotEqual(t, base, digest(&openwopv1.CreateRunRequest{WorkflowId: "wf", Inputs: doc(`{"a":1,"b":3}`)}))
	require.NotEqual(t, base, digest(&openwopv1.CreateRunRequest{WorkflowId: "wg", Inputs: doc(`{"a":1,"b":2}`)}))
	require.NotEqual(t, base, digest(&openwopv1.CreateRunRequest{
		WorkflowId: "wf",
		Inputs:     doc(`{"a":1,"b":2}`),
		Tags:       []string{"t"},
	}))
}

func TestCreateRun_ReportsAReplayIfTheLogHasTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.start = func(q *dispatcherv1.StartRunRequest) (*dispatcherv1.StartRunResponse, error) {
		return &dispatcherv1.StartRunResponse{RunId: q.GetRunId(), Status: "completed", Replayed: true}, nil
	}
	ctx := as(t, liveKey, engine.MetaIdempotencyKey, "k")
	res, err := r.CreateRun(ctx, &openwopv1.CreateRunRequest{WorkflowId: "wf"})
	require.NoError(t, err)
	require.Equal(t, "completed", res.GetStatus())
	require.Equal(t, "true", ctx.metadata(engine.MetaReplay))
	require.Equal(t, "201", ctx.metadata(engine.MetaStatus), "a replay has the original status")
}

func TestCreateRun_ReplaysFinalFailuresAndRetriesTheRest(t *testing.T) {
	t.Parallel()
	cases := []struct {
		code  fault.Code
		again int
	}{
		{fault.WorkflowNotFound, 1},
		{fault.IdempotencyKeyMismatch, 2},
		{fault.ValidationError, 2},
		{fault.MockProviderForbidden, 2},
		{fault.RunAlreadyActive, 2},
		{fault.ServiceUnavailable, 2},
		{fault.InternalError, 2},
	}
	for _, c := range cases {
		t.Run(string(c.code), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.dispatcher.start = func(*dispatcherv1.StartRunRequest) (*dispatcherv1.StartRunResponse, error) {
				return nil, fault.New(c.code, "no").With("why", "because")
			}
			_, err := r.CreateRun(as(t, liveKey, engine.MetaIdempotencyKey, "k"), &openwopv1.CreateRunRequest{WorkflowId: "wf"})
			require.Equal(t, c.code, fault.CodeOf(err))
			ctx := as(t, liveKey, engine.MetaIdempotencyKey, "k")
			_, err = r.CreateRun(ctx, &openwopv1.CreateRunRequest{WorkflowId: "wf"})
			e, ok := fault.As(err)
			require.True(t, ok)
			require.Equal(t, c.code, e.Code)
			require.Equal(t, "because", e.Details["why"])
			require.Len(t, r.dispatcher.starts, c.again)
			require.Equal(t, c.again == 1, ctx.metadata(engine.MetaReplay) == "true")
		})
	}
}

func TestCreateRun_RefusesAFailedKeyForAnotherRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.start = func(*dispatcherv1.StartRunRequest) (*dispatcherv1.StartRunResponse, error) {
		return nil, fault.New(fault.WorkflowNotFound, "no")
	}
	_, err := r.CreateRun(as(t, liveKey, engine.MetaIdempotencyKey, "k"), &openwopv1.CreateRunRequest{WorkflowId: "wf"})
	require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err))
	_, err = r.CreateRun(as(t, liveKey, engine.MetaIdempotencyKey, "k"), &openwopv1.CreateRunRequest{WorkflowId: "other"})
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
	require.NotContains(t, err.Error(), "run_", "the earlier run is not named")
	require.Len(t, r.dispatcher.starts, 1)
}

// throughOnce calls a method as the server does.
func throughOnce(r *rig, ctx context.Context, method string, req proto.Message) (any, error) {
	return r.Once(ctx, req, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, req any) (any, error) {
		switch q := req.(type) {
		case *openwopv1.CancelRunRequest:
			return r.CancelRun(ctx, q)
		case *openwopv1.BulkCancelRunsRequest:
			return r.BulkCancelRuns(ctx, q)
		case *hostv1.PutWorkflowRequest:
			return r.PutWorkflow(ctx, q)
		default:
			return q, nil
		}
	})
}

func TestOnce_CancelsOnceAndReplaysTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req := &openwopv1.CancelRunRequest{RunId: "run_1", Reason: proto.String("why")}
	var answers []proto.Message
	for i := range 3 {
		ctx := as(t, liveKey, engine.MetaIdempotencyKey, "k")
		res, err := throughOnce(r, ctx, openwopv1.Engine_CancelRun_FullMethodName, req)
		require.NoError(t, err)
		answers = append(answers, res.(proto.Message))
		require.Equal(t, i > 0, ctx.metadata(engine.MetaReplay) == "true")
	}
	require.True(t, proto.Equal(answers[0], answers[1]) && proto.Equal(answers[0], answers[2]))
	require.Len(t, r.dispatcher.cancels, 1)
}

func TestOnce_DistinguishesRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := throughOnce(r, as(t, liveKey, engine.MetaIdempotencyKey, "k"), openwopv1.Engine_CancelRun_FullMethodName, &openwopv1.CancelRunRequest{RunId: "run_1"})
	require.NoError(t, err)
	_, err = throughOnce(r, as(t, liveKey, engine.MetaIdempotencyKey, "k"), openwopv1.Engine_CancelRun_FullMethodName, &openwopv1.CancelRunRequest{RunId: "run_2"})
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
	require.Len(t, r.dispatcher.cancels, 1, "run_1's answer is not run_2's, and run_2 is not ended")
}

func TestOnce_KeepsTenantsAndOperationsApart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, key := range []string{liveKey, betaKey} {
		_, err := throughOnce(r, as(t, key, engine.MetaIdempotencyKey, "k"), openwopv1.Engine_CancelRun_FullMethodName, &openwopv1.CancelRunRequest{RunId: "run_1"})
		require.NoError(t, err)
	}
	_, err := throughOnce(r, as(t, liveKey, engine.MetaIdempotencyKey, "k"), openwopv1.Engine_BulkCancelRuns_FullMethodName, &openwopv1.BulkCancelRunsRequest{RunIds: []string{"run_1"}})
	require.NoError(t, err)
	require.Len(t, r.dispatcher.cancels, 3)
}

func TestOnce_LeavesReadsAndKeylessCallsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 2 {
		_, err := throughOnce(r, as(t, liveKey), openwopv1.Engine_CancelRun_FullMethodName, &openwopv1.CancelRunRequest{RunId: "run_1"})
		require.NoError(t, err)
		_, err = throughOnce(r, as(t, liveKey, engine.MetaIdempotencyKey, ""), openwopv1.Engine_GetRun_FullMethodName, &openwopv1.GetRunRequest{RunId: "run_1"})
		require.NoError(t, err, "a read ignores the key, even a bad one")
	}
	require.Len(t, r.dispatcher.cancels, 2)
}

func TestOnce_RefusesABadKeyBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := throughOnce(r, as(t, liveKey, engine.MetaIdempotencyKey, ""), openwopv1.Engine_CancelRun_FullMethodName, &openwopv1.CancelRunRequest{RunId: "run_1"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	require.Empty(t, r.dispatcher.cancels)
}

// A replay has the original status, also where that was not 201 (OpenWOP host
// contract §2.1).
func TestOnce_RegistersOnceAndReplaysTheStatus(t *testing.T) {
	t.Parallel()
	for created, status := range map[bool]string{true: "201", false: ""} {
		r := newRig(t)
		r.dispatcher.put = func(*dispatcherv1.PutWorkflowRequest) (*dispatcherv1.PutWorkflowResponse, error) {
			return &dispatcherv1.PutWorkflowResponse{WorkflowId: "wf", Version: "1", Digest: "d", Created: created}, nil
		}
		for range 2 {
			ctx := as(t, liveKey, engine.MetaIdempotencyKey, "k")
			res, err := throughOnce(r, ctx, hostv1.Host_PutWorkflow_FullMethodName, &hostv1.PutWorkflowRequest{Definition: doc(`{"workflowId":"wf"}`)})
			require.NoError(t, err)
			require.Equal(t, created, res.(*hostv1.PutWorkflowResponse).GetCreated())
			require.Equal(t, status, ctx.metadata(engine.MetaStatus))
		}
		require.Len(t, r.dispatcher.puts, 1)
	}
}
