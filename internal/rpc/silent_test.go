package rpc_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
)

// way is a network path to a server that can be cut.
type way struct {
	lis *bufconn.Listener
	cut atomic.Bool
}

func (w *way) dial(ctx context.Context, _ string) (net.Conn, error) {
	if w.cut.Load() {
		return nil, errors.New("no server")
	}
	conn, err := w.lis.DialContext(ctx)
	return mute{conn, w}, err
}

// mute accepts writes and drops them while the path is cut.
type mute struct {
	net.Conn
	way *way
}

func (m mute) Write(b []byte) (int, error) {
	if m.way.cut.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// Close does not reach the server while the path is cut.
func (m mute) Close() error {
	if m.way.cut.Load() {
		return nil
	}
	return m.Conn.Close()
}

// reach returns a client of a server with gRPC's health service; watch counts its streams.
func reach(t *testing.T, watch ...grpc.StreamServerInterceptor) (*way, healthv1.HealthClient) {
	t.Helper()
	w := &way{lis: bufconn.Listen(1 << 20)}
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), nil, watch)
	healthv1.RegisterHealthServer(srv, health.NewServer())
	go func() { _ = srv.Serve(w.lis) }()
	t.Cleanup(srv.Stop)
	conn, err := grpc.NewClient("passthrough:///test", append(rpc.ClientOptions(),
		grpc.WithContextDialer(w.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return w, healthv1.NewHealthClient(conn)
}

// pass advances the fake time of the bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in a bubble

// A stream has no deadline: without pings it would wait forever.
func TestClient_DropsASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, c := reach(t)
		stream, err := c.Watch(t.Context(), &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		w.cut.Store(true)
		cut := time.Now()
		_, err = stream.Recv()
		require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""))
		require.Less(t, time.Since(cut), 30*time.Second)
	})
}

// Clients reconnect soon after a server returns, even after a long outage.
func TestClient_ReconnectsSoonAfterALongOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, c := reach(t)
		w.cut.Store(true)
		for range 600 {
			_, err := c.Check(t.Context(), &healthv1.HealthCheckRequest{})
			require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""))
			pass(time.Second)
		}
		w.cut.Store(false)
		require.Eventually(t, func() bool {
			_, err := c.Check(t.Context(), &healthv1.HealthCheckRequest{})
			return err == nil
		}, 10*time.Second, 100*time.Millisecond)
	})
}

// A vanished client does not hold a stream for long, because streams are limited.
func TestServer_DropsASilentClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		w, c := reach(t, func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			err := next(srv, ss)
			ended <- time.Now()
			return err
		})
		stream, err := c.Watch(t.Context(), &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		w.cut.Store(true)
		cut := time.Now()
		require.Less(t, (<-ended).Sub(cut), time.Minute)
	})
}
