package natsstore

import (
	"log/slog"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// The pending messages of the consumer are the runs that wait for a slot and those in execution. KEDA
// scales the dispatchers by them and by the queue.
func TestWaiting_ConsumerCountsTicketsForAnAutoscaler(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	s, err := Open(t.Context(), srv.Connect, jetstream.DefaultConfig(), ForDispatcher)
	t.Cleanup(s.Close)
	require.NoError(t, err)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	pending := func() int {
		c, err := api.Consumer(t.Context(), jetkv.Stream(queue.Bucket), queue.ScalingConsumer)
		require.NoError(t, err)
		return int(c.CachedInfo().NumPending) + c.CachedInfo().NumAckPending //nolint:gosec // G115: it is small
	}
	settles := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return pending() == n }, 30*time.Second, 20*time.Millisecond)
	}
	put := func(key string, rev uint64) uint64 {
		rev, err := s.Waiting.Update(t.Context(), key, []byte(`{}`), rev)
		require.NoError(t, err)
		return rev
	}
	one := put("ready.a.run_1.1", 0)
	put("ready.b.run_2.2", 0)
	put("limited.a.run_3.3", 0)
	put("permit.x.0", 0)
	settles(2)
	one = put("ready.a.run_1.1", one) // claimed: it is executed
	settles(2)
	require.NoError(t, s.Waiting.Delete(t.Context(), "ready.a.run_1.1", one))
	stream, err := api.Stream(t.Context(), jetkv.Stream(queue.Bucket))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := stream.Info(t.Context(), js.WithSubjectFilter("$KV."+queue.Bucket+".ready.a.>"))
		return err == nil && len(info.State.Subjects) == 0
	}, 30*time.Second, 50*time.Millisecond, "the marker of the deletion goes soon")
	settles(1)
}
