package jetstream_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/runlog/runlogtest"
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
