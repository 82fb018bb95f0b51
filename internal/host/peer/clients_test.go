package peer

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/rpc"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
)

// flaky is an acceptor that fails all calls except every third.
type flaky struct {
	acceptorv1.UnimplementedAcceptorServer
	calls atomic.Int32
}

func (f *flaky) answer() error {
	if f.calls.Add(1)%3 != 0 {
		return fault.New(fault.ServiceUnavailable, "not now")
	}
	return nil
}

func (f *flaky) ListKinds(context.Context, *acceptorv1.ListKindsRequest) (*acceptorv1.ListKindsResponse, error) {
	return &acceptorv1.ListKindsResponse{}, f.answer()
}

func (f *flaky) Accept(context.Context, *acceptorv1.AcceptRequest) (*acceptorv1.AcceptResponse, error) {
	return &acceptorv1.AcceptResponse{}, f.answer()
}

// Only reads are retried, up to three tries (docs/services.md, "Load balancing").
func TestConnect_RetriesReadsOnly(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv, f, alive := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil), &flaky{}, health.NewServer()
	acceptorv1.RegisterAcceptorServer(srv, f)
	healthv1.RegisterHealthServer(srv, alive)
	alive.SetServingStatus(probe.HealthOfReads, healthv1.HealthCheckResponse_SERVING)
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	clients, _, err := Connect(&Options{Acceptor: lis.Addr().String()}, slog.New(slog.DiscardHandler), t.Cleanup)
	require.NoError(t, err)

	_, err = clients.Acceptor.ListKinds(t.Context(), &acceptorv1.ListKindsRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 3, f.calls.Load())

	_, err = clients.Acceptor.Accept(t.Context(), &acceptorv1.AcceptRequest{})
	require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""))
	require.EqualValues(t, 4, f.calls.Load())
}
