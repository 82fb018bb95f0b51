// Package rpctest puts services of a test behind real gRPC connections: HTTP/2 over in-memory
// listeners, as between processes.
package rpctest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"waybill.dev/waybill/internal/rpc"
)

// bufferBytes is the capacity of an in-memory connection in each direction.
const bufferBytes = 256 << 10

// Serve serves until stop is called or the test ends, and connects to it. The connection outlives
// stop.
func Serve(t testing.TB, srv *grpc.Server) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	return ServeWith(t, srv)
}

// ServeWith is Serve with additional options of the connection.
func ServeWith(t testing.TB, srv *grpc.Server, more ...grpc.DialOption) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	lis := bufconn.Listen(bufferBytes)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///test", append(append(rpc.ClientOptions(), more...),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // never leaves the process
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
	)...)
	require.NoError(t, err)
	stop = sync.OnceFunc(func() {
		srv.Stop()
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // a short test stops it before it starts
			require.NoError(t, err)
		}
	})
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		stop()
	})
	return conn, stop
}
