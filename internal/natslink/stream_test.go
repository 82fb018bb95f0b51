package natslink_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natslink/natslinktest"
)

// cluster has a stream with some replicas; 0 if it has none.
type cluster struct {
	js.JetStream
	replicas int
}

type copies struct {
	js.Stream
	cfg js.StreamConfig
}

func (c cluster) Stream(_ context.Context, name string) (js.Stream, error) {
	if c.replicas == 0 {
		return nil, js.ErrStreamNotFound
	}
	return copies{cfg: js.StreamConfig{Name: name, Replicas: c.replicas}}, nil
}

func (c cluster) CreateOrUpdateStream(_ context.Context, cfg js.StreamConfig) (js.Stream, error) {
	return copies{cfg: cfg}, nil
}

func (c copies) CachedInfo() *js.StreamInfo { return &js.StreamInfo{Config: c.cfg} }

func TestStream_TakesNoCopiesAwayAndReadsOfSeveralFromTheLeader(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		there, wanted, want int
		direct              bool
	}{{0, 1, 1, true}, {0, 3, 3, false}, {3, 1, 3, false}, {1, 3, 3, false}, {3, 3, 3, false}, {1, 1, 1, true}} {
		s, err := natslink.Stream(t.Context(), cluster{replicas: tc.there}, js.StreamConfig{Name: "LOG", Replicas: tc.wanted})
		require.NoError(t, err)
		got := s.CachedInfo().Config
		got.MaxConsumers = 0 // see below
		require.Equal(t, js.StreamConfig{Name: "LOG", Replicas: tc.want, AllowDirect: tc.direct}, got, "%+v", tc)
	}
}

// A server's own limit is 1,000, the host's consumers included. An operator's own limit is kept.
func TestStream_AllowsManyConsumersByDefault(t *testing.T) {
	t.Parallel()
	_, api := storing(t)
	limit := func() int {
		s, err := natslink.Stream(t.Context(), api, js.StreamConfig{Name: "LOG", Subjects: []string{"log"}})
		require.NoError(t, err)
		return s.CachedInfo().Config.MaxConsumers
	}
	require.Equal(t, 100_000, limit())
	for set, want := range map[int]int{5_000: 5_000, -1: 100_000} {
		_, err := api.UpdateStream(t.Context(), js.StreamConfig{
			Name:         "LOG",
			Subjects:     []string{"log"},
			AllowDirect:  true,
			MaxConsumers: set,
		})
		require.NoError(t, err)
		require.Equal(t, want, limit())
	}
}

// fixed is a server before 2.12, at which the limit of a stream is what it was made with.
type fixed struct {
	cluster
	asked []int
}

func (f *fixed) CreateOrUpdateStream(ctx context.Context, cfg js.StreamConfig) (js.Stream, error) {
	if f.asked = append(f.asked, cfg.MaxConsumers); cfg.MaxConsumers > 0 {
		return nil, &js.APIError{
			Code:        500,
			ErrorCode:   10052,
			Description: "stream configuration update can not change MaxConsumers",
		}
	}
	return f.cluster.CreateOrUpdateStream(ctx, cfg)
}

func TestStream_LeavesTheLimitOfConsumersWhereTheServerDoesNotChangeIt(t *testing.T) {
	t.Parallel()
	f := &fixed{cluster: cluster{replicas: 3}}
	_, err := natslink.Stream(t.Context(), f, js.StreamConfig{Name: "LOG", Replicas: 3})
	require.NoError(t, err)
	require.Equal(t, []int{100_000, -1}, f.asked)
}

func TestStream_LeavesItToAnAccountThatAllowsFewerConsumers(t *testing.T) {
	t.Parallel()
	s, api := storing(t)
	open := func() {
		s, err := natslink.Stream(t.Context(), api, js.StreamConfig{Name: "LOG", Subjects: []string{"log"}})
		require.NoError(t, err)
		require.Equal(t, -1, s.CachedInfo().Config.MaxConsumers)
	}
	limit := func(n int) {
		require.NoError(t, s.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{
			"": {MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: n},
		}))
	}
	limit(50)
	open()
	limit(-1)
	_, err := api.UpdateStream(t.Context(), js.StreamConfig{
		Name:         "LOG",
		Subjects:     []string{"log"},
		AllowDirect:  true,
		MaxConsumers: 5000,
	})
	require.NoError(t, err)
	limit(50)
	open()
}

// storing starts a server with an empty store.
func storing(t *testing.T) (*server.Server, js.JetStream) {
	t.Helper()
	s := natslinktest.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	return s, api
}
