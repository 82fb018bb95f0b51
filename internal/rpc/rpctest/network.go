// Package rpctest puts services of a test behind real gRPC connections: HTTP/2
// over in-memory listeners, as between processes.
package rpctest

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"waybill.dev/waybill/internal/rpc"
)

// bufferBytes is the capacity of an in-memory connection in each direction.
const bufferBytes = 256 << 10

// Network reaches services by name. The zero value is ready to use.
type Network struct {
	mu        sync.Mutex // guards listeners
	listeners map[string]*bufconn.Listener
}

// Listen gives the in-memory listener of a service, made on first use so that
// start order does not matter.
func (n *Network) Listen(service string) (net.Listener, error) { return n.listener(service), nil }

// Conn dials the in-memory listener of a service. The caller closes it.
func (n *Network) Conn(service string) (*grpc.ClientConn, error) {
	lis := n.listener(service)
	opts := append(rpc.ClientOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // never leaves the process
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
	)
	conn, err := grpc.NewClient("passthrough:///"+service, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", service, err)
	}
	return conn, nil
}

func (n *Network) listener(service string) *bufconn.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*bufconn.Listener{}
	}
	if n.listeners[service] == nil {
		n.listeners[service] = bufconn.Listen(bufferBytes)
	}
	return n.listeners[service]
}
