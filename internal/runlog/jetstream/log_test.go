package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natslink/natslinktest"
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
	goleak.VerifyTestMain(m, natsdtest.LeftBehind()...)
}

// full joins the two ends of the log, as one dispatcher holds them.
type full struct {
	*jetstream.Log
	*jetstream.Queue
}

// serve starts a server that syncs every write, and opens its log.
func serve(t *testing.T, dir string, cfg jetstream.Config) (*natsd.Server, *jetstream.Log) {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, Sync: true, Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cfg.OnDisk = srv.OnDisk
	log, err := jetstream.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	return srv, log
}

func open(t *testing.T, dir string, cfg jetstream.Config) full {
	t.Helper()
	_, log := serve(t, dir, cfg)
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
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
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
		// A caller with a shorter deadline still gets the log's error, not its own timeout.
		ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
		require.ErrorIs(t, try(ctx), runlog.ErrUnavailable, name)
		cancel()
	}
}

func TestLog_ReportsAFrameThatTheServerNeverStores(t *testing.T) {
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

// The acknowledgement of a frame is lost with its connection. The writer finds the frame over the
// next connection, without waiting for a timeout.
func TestLog_FindsAFrameWhoseAcknowledgementWasLostImmediately(t *testing.T) {
	t.Parallel()
	srv := natslinktest.Start(t)
	log, err := jetstream.Open(t.Context(), srv.Conn, testConfig())
	require.NoError(t, err)
	other, err := srv.Connect("other")
	require.NoError(t, err)
	t.Cleanup(other.Close)
	reader, err := jetstream.Open(t.Context(), other, testConfig())
	require.NoError(t, err)

	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	var pos uint64
	require.NoError(t, srv.Under(t, func(ctx context.Context) (err error) {
		pos, err = log.Append(ctx, frame.NewOpen(run, []byte(`{}`)), 0)
		return err
	}, func() bool {
		_, err := reader.Last(t.Context(), run)
		return err == nil
	}))
	require.EqualValues(t, 1, pos)
	frames, err := reader.Run(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, frames, 1)
}

func TestLog_ReadsAgainAfterALostConnection(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	for name, read := range map[string]func(context.Context, *jetstream.Log) error{
		"run":   func(ctx context.Context, l *jetstream.Log) error { _, err := l.Run(ctx, run); return err },
		"after": func(ctx context.Context, l *jetstream.Log) error { _, err := l.After(ctx, run, 1); return err },
		"last":  func(ctx context.Context, l *jetstream.Log) error { _, err := l.Last(ctx, run); return err },
		"end":   func(ctx context.Context, l *jetstream.Log) error { _, err := l.End(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natslinktest.Start(t)
			log, err := jetstream.Open(t.Context(), srv.Conn, testConfig())
			require.NoError(t, err)
			_, err = log.Append(t.Context(), frame.NewOpen(run, []byte(`{}`)), 0)
			require.NoError(t, err)
			require.NoError(t, srv.Under(t, func(ctx context.Context) error { return read(ctx, log) }, nil))
		})
	}
}

func TestLog_ACheckLostWithItsConnectionFailsImmediately(t *testing.T) {
	t.Parallel()
	srv := natslinktest.Start(t)
	log, err := jetstream.Open(t.Context(), srv.Conn, testConfig())
	require.NoError(t, err)
	err = srv.Under(t, log.Check, nil)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.ErrorIs(t, err, natslink.ErrLost)
	require.NotErrorIs(t, err, context.Canceled, "the context has not ended")
}
