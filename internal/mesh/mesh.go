// Package mesh answers one question: how do I reach that service?
//
// Local keeps all services in one process, behind in-memory listeners, on the
// exact path a deployed host takes: messages are copied, deadlines and metadata
// cross the boundary, streams have flow control.
package mesh

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

// Names of the services.
const (
	Gateway    = "gateway"
	Acceptor   = "acceptor"
	Dispatcher = "dispatcher"
	EventLog   = "eventlog"
	Redactor   = "redactor"
)

// Mesh reaches services by name.
type Mesh interface {
	// Listen gives the listener a service serves on.
	Listen(service string) (net.Listener, error)
	// Conn gives a client connection to a service. The caller closes it.
	Conn(service string) (*grpc.ClientConn, error)
}

// bufferBytes is the capacity of an in-memory connection in each direction.
const bufferBytes = 256 << 10

// Local is a mesh within one process. The zero value is ready to use.
type Local struct {
	mu        sync.Mutex // guards listeners
	listeners map[string]*bufconn.Listener
}

// Listen gives the in-memory listener of a service, made on first use so that
// start order does not matter.
func (l *Local) Listen(service string) (net.Listener, error) { return l.listener(service), nil }

// Conn dials the in-memory listener of a service.
func (l *Local) Conn(service string) (*grpc.ClientConn, error) {
	lis := l.listener(service)
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

func (l *Local) listener(service string) *bufconn.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = map[string]*bufconn.Listener{}
	}
	if l.listeners[service] == nil {
		l.listeners[service] = bufconn.Listen(bufferBytes)
	}
	return l.listeners[service]
}
