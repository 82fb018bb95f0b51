package rest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"waybill.dev/waybill/internal/rpc/rpctest"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
)

// bearing returns a context with a credential.
func bearing(t testing.TB, credential string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", credential)
}

func TestGRPC_LimitsWatchesOfOneAddress(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) { c.Admission.MaxRequests, c.Admission.MaxUnknown = 800, 3 })
	conn, _ := rpctest.Serve(t, h.svc.Server())
	health := healthv1.NewHealthClient(conn)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for range 3 {
		w, err := health.Watch(ctx, &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = w.Recv()
		require.NoError(t, err)
	}
	w, err := health.Watch(ctx, &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = w.Recv()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "%v", err)
	_, err = openwopv1.NewEngineClient(conn).GetRun(bearing(t, full), &openwopv1.GetRunRequest{RunId: "run_1"})
	require.NoError(t, err, "a caller with a key is not counted by its address")
	end()
	require.Eventually(t, func() bool {
		_, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{})
		return err == nil
	}, 30*time.Second, time.Millisecond, "the places are given back")
}

func TestGRPC_LimitsTheStreamsOfAConnection(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) { c.GRPCStreams = 2 })
	conn, _ := rpctest.Serve(t, h.svc.Server())
	health := healthv1.NewHealthClient(conn)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for range 2 {
		w, err := health.Watch(ctx, &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = w.Recv()
		require.NoError(t, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := health.Check(short, &healthv1.HealthCheckRequest{})
	require.Error(t, err, "the third stream waits")
}

func TestGRPC_LimitsMetadataAndMessages(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	conn, _ := rpctest.Serve(t, h.svc.Server())
	engine := openwopv1.NewEngineClient(conn)
	ctx := metadata.AppendToOutgoingContext(bearing(t, full), "x-big", strings.Repeat("x", 100<<10))
	_, err := engine.GetRun(ctx, &openwopv1.GetRunRequest{RunId: "run_1"})
	require.Error(t, err, "100 KB of metadata")
	_, err = engine.CreateRun(bearing(t, full), &openwopv1.CreateRunRequest{
		WorkflowId: "wf", Inputs: &openwopv1.JsonDocument{Json: []byte(`{"x":"` + strings.Repeat("x", 128<<10) + `"}`)},
	})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	require.Empty(t, h.dispatcher.starts)
}

// A header that is there twice could mean two things, over gRPC as over REST.
func TestGRPC_RejectsRepeatedMetadata(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	conn, _ := rpctest.Serve(t, h.svc.Server())
	ctx := metadata.AppendToOutgoingContext(bearing(t, full), "idempotency-key", "a", "idempotency-key", "b")
	_, err := openwopv1.NewEngineClient(conn).CreateRun(ctx, &openwopv1.CreateRunRequest{WorkflowId: "wf"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", err)
	require.Empty(t, h.dispatcher.starts)
}
