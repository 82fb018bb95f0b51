package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/runlog/runlogtest"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(dir))
		os.Exit(1) //nolint:forbidigo // this is a process of its own
	}
	goleak.VerifyTestMain(m,
		// The server leaves these behind for the whole process.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*jetStream).monitorQueueDepth"),
	)
}

// full joins the two ends of the log, as one dispatcher holds them.
type full struct {
	*jetstream.Log
	*jetstream.Queue
}

func open(t *testing.T, dir string, cfg jetstream.Config) full {
	t.Helper()
	srv, err := natsd.Start(natsd.Config{Dir: dir, Sync: true, Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	q, err := log.Queue(t.Context())
	require.NoError(t, err)
	t.Cleanup(q.Close)
	return full{log, q}
}

func testConfig() jetstream.Config {
	cfg := jetstream.DefaultConfig()
	cfg.AckWait, cfg.RetryDelay = 2*time.Second, 10*time.Millisecond
	return cfg
}

func TestLog_KeepsThePortsContract(t *testing.T) {
	runlogtest.Run(t, func(t *testing.T) runlogtest.Full { return open(t, t.TempDir(), testConfig()) })
}

func TestLog_WithPatienceGivesUpBeforeItsCaller(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cfg := testConfig()
	cfg.Patience = 100 * time.Millisecond
	log, err := jetstream.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	srv.Stop()

	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	for name, try := range map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := log.Append(ctx, frame.NewOpen(run, []byte(`{}`)), 0)
			return err
		},
		"run":   func(ctx context.Context) error { _, err := log.Run(ctx, run); return err },
		"after": func(ctx context.Context) error { _, err := log.After(ctx, run, 1); return err },
		"last":  func(ctx context.Context) error { _, err := log.Last(ctx, run); return err },
		"check": func(ctx context.Context) error { return log.Check(ctx) },
	} {
		require.ErrorIs(t, try(t.Context()), runlog.ErrUnavailable, name)
		// A caller of less patience still hears it from the log, and not from its clock.
		ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
		require.ErrorIs(t, try(ctx), runlog.ErrUnavailable, name)
		cancel()
	}
}

func TestLog_TellsAFrameThatTheServerNeverTakes(t *testing.T) {
	t.Parallel()
	log := open(t, t.TempDir(), testConfig())
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	_, err := log.Append(t.Context(), frame.NewOpen(run, bytes.Repeat([]byte(" "), runlog.MaxFrameBytes)), 0)
	large, ok := errors.AsType[*runlog.TooLargeError](err)
	require.True(t, ok, "%v", err)
	require.NotErrorIs(t, err, runlog.ErrUnavailable)
	require.Greater(t, large.Size, large.Limit)
	require.EqualValues(t, runlog.MaxFrameBytes, large.Limit)
	_, err = log.Run(t.Context(), run)
	require.ErrorIs(t, err, runlog.ErrNotFound)
}

// mutable is a server whose answers can be kept from the client.
type mutable struct {
	*natsd.Server
	mu   sync.Mutex // guards what follows
	last *muteConn
}

func (m *mutable) InProcessConn() (net.Conn, error) {
	c, err := m.Server.InProcessConn()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = &muteConn{Conn: c}
	return m.last, nil
}

// mute swallows what the server says on today's connection; the next one hears again.
func (m *mutable) mute() *muteConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last.deaf.Store(true)
	return m.last
}

type muteConn struct {
	net.Conn
	deaf atomic.Bool
}

func (c *muteConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

// The acknowledgement of a frame goes down with its connection: whoever appended it
// learns on the next connection that it is there, and not after a timeout.
func TestLog_AnAcknowledgementLostWithItsConnectionIsLookedForAtOnce(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	m := &mutable{Server: srv}
	nc, err := nats.Connect("", nats.InProcessServer(m), nats.UserInfo("waybill-internal", "secret"), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)
	other, err := srv.Connect("other")
	require.NoError(t, err)
	t.Cleanup(other.Close)
	reader, err := jetstream.Open(t.Context(), other, testConfig())
	require.NoError(t, err)

	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	conn := m.mute()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // shorter than one try
	defer cancel()
	type outcome struct {
		pos uint64
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		pos, err := log.Append(ctx, frame.NewOpen(run, []byte(`{}`)), 0)
		done <- outcome{pos, err}
	}()
	require.Eventually(t, func() bool {
		_, err := reader.Last(t.Context(), run)
		return err == nil
	}, 10*time.Second, time.Millisecond, "the server has the frame")
	require.NoError(t, conn.Close())
	got := <-done
	require.NoError(t, got.err)
	require.EqualValues(t, 1, got.pos)
	frames, err := reader.Run(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, frames, 1)
}
