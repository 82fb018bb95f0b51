package jetstream_test

import (
	"fmt"
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
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// A dispatcher that takes up the runs of one that was killed reads many long logs at once. The server ends
// a connection for which more than 32 MB wait, and appends go over the same.
func TestLog_ReadsManyLongRunsOverOneConnection(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}, "secret")
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
	f := frame.NewOpen(run, []byte(`{}`))
	for i := 0; ; i++ {
		f.Pos, err = log.Append(t.Context(), f, f.Pos)
		require.NoError(t, err)
		if i == steps {
			break
		}
		head := f.Head()
		d := wire.Draft{Type: wire.EventLogAppended, Payload: fmt.Appendf(nil, `{"level":"info","message":%q}`, strings.Repeat("m", 10+100_000*min(1, i/small)))}
		f = frame.New(run, subject.Step, head, []wire.Event{d.Place(run.RunID, head.Next, time.UnixMilli(1700000000000))})
		f.Pos = head.Pos
	}
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
