package rpc_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	"waybill.dev/waybill/protocol/fault"
)

func TestGuard_AdmitsOnlyTheToken(t *testing.T) {
	t.Parallel()
	const token = "tok-0123456789abcdef"
	guard := rpc.BearerToken(token, healthv1.Health_Watch_FullMethodName)
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), []grpc.UnaryServerInterceptor{guard.Unary}, []grpc.StreamServerInterceptor{guard.Stream})
	healthv1.RegisterHealthServer(srv, health.NewServer())
	conn, _ := rpctest.Serve(t, srv)
	client := healthv1.NewHealthClient(conn)

	for name, tc := range map[string]struct {
		value string
		ok    bool
	}{
		"the token":       {"Bearer " + token, true},
		"none":            {"", false},
		"another":         {"Bearer " + token + "x", false},
		"without scheme":  {token, false},
		"another scheme":  {"Basic " + token, false},
		"an empty bearer": {"Bearer ", false},
	} {
		ctx := t.Context()
		if tc.value != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", tc.value)
		}
		_, err := client.Check(ctx, &healthv1.HealthCheckRequest{})
		if tc.ok {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, fault.Unauthenticated, fault.CodeOf(err), name)
		require.NotContains(t, err.Error(), token, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Watch(ctx, &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err, "open to all")
	stream2, err := client.List(ctx, &healthv1.HealthListRequest{})
	require.Nil(t, stream2)
	require.Equal(t, fault.Unauthenticated, fault.CodeOf(err))
}
