package natslink_test

import (
	"context"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
)

// cluster has a stream with some replicas; 0: it has none.
type cluster struct {
	js.JetStream
	replicas int
}

type copies struct {
	js.Stream
	replicas int
}

func (c cluster) Stream(context.Context, string) (js.Stream, error) {
	if c.replicas == 0 {
		return nil, js.ErrStreamNotFound
	}
	return copies{replicas: c.replicas}, nil
}

func (c copies) CachedInfo() *js.StreamInfo {
	return &js.StreamInfo{Config: js.StreamConfig{Replicas: c.replicas}}
}

func TestReplicas_TakesNoCopiesAway(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ there, wanted, want int }{{0, 1, 1}, {0, 3, 3}, {3, 1, 3}, {1, 3, 3}, {3, 3, 3}} {
		got, err := natslink.Replicas(t.Context(), cluster{replicas: tc.there}, "LOG", tc.wanted)
		require.NoError(t, err)
		require.Equal(t, tc.want, got, "%+v", tc)
	}
}
