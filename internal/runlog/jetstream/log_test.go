package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

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
