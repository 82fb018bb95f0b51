package jetstream_test

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/subject"
)

// A dispatcher that takes over many runs reads many long logs concurrently. The server ends
// a connection for which more than 32 MB wait, and appends go over the same.
func TestLog_ReadsManyLongRunsOverOneConnection(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(t.Context(), natsd.Config{
		Dir:  t.TempDir(),
		Addr: "127.0.0.1:0",
		Log:  slog.New(slog.DiscardHandler),
	}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	var gone atomic.Int64
	nc, err := nats.Connect("nats://"+srv.Addr(), nats.UserInfo(natsd.HostUser, "secret"), nats.ReconnectWait(10*time.Millisecond),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { gone.Add(1) }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)

	const small, steps, readers = 36, 300, 8
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	grow(t, log, run, steps, func(i int) string { return strings.Repeat("m", 10+100_000*min(1, i/small)) })
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			if frames, err := log.Run(t.Context(), run); assert.NoError(t, err) {
				assert.Len(t, frames, steps+1)
			}
		})
	}
	wg.Wait()
	require.Zero(t, gone.Load(), "the connection was cut")
}
