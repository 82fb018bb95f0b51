package natsstore

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/subject"
)

// Every stream with acknowledged data is checked, including new ones, but not those of test seams.
func TestStores_CheckAllStreamsOfAcknowledgedData(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	s, err := Open(t.Context(), srv.Connect, jetstream.DefaultConfig(), ForDispatcher, ForAcceptor, ForGateway, ForSeams)
	t.Cleanup(s.Close)
	require.NoError(t, err)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	var there []string
	for name := range api.StreamNames(t.Context()).Name() {
		if name != subject.Stream && !strings.HasPrefix(name, "KV_waybill_seam") {
			there = append(there, name)
		}
	}
	slices.Sort(there)
	slices.Sort(s.names)
	require.Equal(t, there, s.names)
	require.Contains(t, there, "KV_waybill_idempotency")
	require.NoError(t, s.Connected(t.Context()))
}

func TestStores_AreNotReadyWithTooFewReplicasOfABucket(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts a cluster of three NATS servers: run without -short")
	}
	servers, nc := natslinktest.Cluster(t)
	cfg := jetstream.DefaultConfig()
	cfg.Replicas, cfg.Patience = 3, Patience
	dial := func(string) (*nats.Conn, error) { return nats.Connect(servers[0].ClientURL()) }
	var s *Stores
	require.Eventually(t, func() bool {
		var err error
		if s, err = Open(t.Context(), dial, cfg, ForGateway); err != nil {
			s.Close()
		}
		return err == nil
	}, 60*time.Second, 50*time.Millisecond)
	t.Cleanup(s.Close)
	require.Eventually(t, func() bool { return s.Connected(t.Context()) == nil }, 30*time.Second, 20*time.Millisecond)

	api, err := js.New(nc)
	require.NoError(t, err)
	bucket, err := api.Stream(t.Context(), "KV_waybill_idempotency")
	require.NoError(t, err)
	edited := bucket.CachedInfo().Config
	edited.Replicas = 1
	_, err = api.UpdateStream(t.Context(), edited)
	require.NoError(t, err)
	const lacks = "stream KV_waybill_idempotency has 1 copies, want 3"
	require.Eventually(t, func() bool {
		err := s.Connected(t.Context())
		return err != nil && err.Error() == lacks
	}, 30*time.Second, 50*time.Millisecond, "after a change of leaders would be over")
	edited.Replicas = 3
	_, err = api.UpdateStream(t.Context(), edited)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Connected(t.Context()) == nil }, 30*time.Second, 50*time.Millisecond)
}
