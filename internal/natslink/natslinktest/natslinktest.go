// Package natslinktest drops connections to an embedded NATS server at the worst moment: after the
// request was sent and before the answer arrives.
package natslinktest

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
)

// patience is shorter than any timeout under test.
const patience = 4 * time.Second

// Server is an embedded server with one connection that can be dropped.
type Server struct {
	*natsd.Server
	Conn *nats.Conn

	mu   sync.Mutex // guards the fields below
	last *conn
}

// Start starts a server and connects to it; both end with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	s := &Server{Server: srv}
	s.Conn, err = nats.Connect("", nats.InProcessServer(s), nats.UserInfo(natsd.HostUser, "secret"),
		nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(s.Conn.Close)
	return s
}

// InProcessConn implements an interface of package nats.
func (s *Server) InProcessConn() (net.Conn, error) {
	c, err := s.Server.InProcessConn()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &conn{Conn: c, asked: make(chan struct{}, 1)}
	return s.last, nil
}

// Under calls f, and drops the connection when done reports that the server has processed f's
// request; nil means as soon as f has sent it. The server's answer is discarded.
func (s *Server) Under(t *testing.T, f func(context.Context) error, done func() bool) error {
	t.Helper()
	s.mu.Lock()
	c := s.last
	s.mu.Unlock()
	c.deaf.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	select {
	case <-c.asked:
	case <-ctx.Done():
		require.Fail(t, "the server was asked nothing")
	}
	if done != nil {
		require.Eventually(t, done, patience, time.Millisecond, "the server does what it was asked")
	}
	require.NoError(t, c.Close())
	return <-ended
}

// conn is a connection that can stop reading.
type conn struct {
	net.Conn
	deaf  atomic.Bool
	asked chan struct{} // receives one value per write from then on
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.deaf.Load() {
		select {
		case c.asked <- struct{}{}:
		default:
		}
	}
	return n, err
}
