package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// A server limits the consumers of a stream. Hosts that read much, or are killed repeatedly, must stay
// far below the limit: delivery and follow need consumers.
func TestLog_LeavesNoConsumersOnTheServer(t *testing.T) {
	t.Parallel()
	nc := natsdtest.Connect(t)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)

	const steps = 100 // too many to request one by one
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	grow(t, log, run, steps, func(int) string { return "m" })
	for range 10 {
		frames, err := log.Run(t.Context(), run)
		require.NoError(t, err)
		require.Len(t, frames, steps+1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err = log.Follow(ctx, 0, func(batch []*frame.Frame) error {
		if seen += len(batch); seen > steps {
			cancel()
		}
		return nil
	}, func(subject.Run, uint64, error) {})
	require.ErrorIs(t, err, context.Canceled)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Zero(c, consumers(t.Context(), c, nc)) }, 30*time.Second, time.Millisecond)
}

// A cluster's log is read in pages from any server, also over routes, and while one server is down.
func TestLog_ReadsLongRunsFromAnyServerOfACluster(t *testing.T) {
	t.Parallel()
	servers, nc := natslinktest.Cluster(t)
	cfg := testConfig()
	cfg.Replicas, cfg.Patience = 3, 2*time.Second
	var log *jetstream.Log
	require.Eventually(t, func() (opened bool) { // the servers find each other
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var err error
		log, err = jetstream.Open(ctx, nc, cfg)
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	const steps = 200
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	grow(t, log, run, steps, func(int) string { return "m" })

	read := func(servers []*server.Server) {
		for _, s := range servers {
			nc, err := nats.Connect(s.ClientURL())
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			var log *jetstream.Log
			require.Eventually(t, func() bool { // a server of a cluster has moments without a leader
				log, err = jetstream.Attach(t.Context(), nc)
				return err == nil
			}, time.Minute, 50*time.Millisecond)
			for range 12 { // each server answers some of them
				var frames []*frame.Frame
				require.Eventually(t, func() bool {
					frames, err = log.Run(t.Context(), run)
					return !errors.Is(err, runlog.ErrUnavailable)
				}, time.Minute, 50*time.Millisecond)
				require.NoError(t, err)
				require.Len(t, frames, steps+1)
				require.NoError(t, frame.VerifyChain(frames))
			}
		}
	}
	read(servers)
	require.Zero(t, consumers(t.Context(), t, nc))
	leads := slices.IndexFunc(servers, func(s *server.Server) bool {
		return s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, subject.Stream)
	})
	require.GreaterOrEqual(t, leads, 0)
	servers[leads].Shutdown()
	read(slices.Delete(servers, leads, leads+1))
}

// grow appends a run with steps, each with a text.
func grow(t *testing.T, log *jetstream.Log, run subject.Run, steps int, says func(step int) string) {
	t.Helper()
	f := frame.NewOpen(run, []byte(`{}`))
	for i := 0; ; i++ {
		pos, err := log.Append(t.Context(), f, f.Pos)
		require.NoError(t, err)
		if f.Pos = pos; i == steps {
			return
		}
		head := f.Head()
		d := wire.Draft{Type: wire.EventLogAppended, Payload: fmt.Appendf(nil, `{"level":"info","message":%q}`, says(i))}
		f = frame.New(run, subject.Step, head, []wire.Event{d.Place(run.RunID, head.Next, time.UnixMilli(1700000000000))})
		f.Pos = head.Pos
	}
}

// consumers returns the number of the log's consumers on the server.
func consumers(ctx context.Context, t require.TestingT, nc *nats.Conn) int {
	api, err := js.New(nc)
	require.NoError(t, err)
	s, err := api.Stream(ctx, subject.Stream)
	require.NoError(t, err)
	return s.CachedInfo().State.Consumers
}
