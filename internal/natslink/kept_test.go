package natslink_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natslink/natslinktest"
)

// unsteady has streams that are degraded or do not answer.
type unsteady struct {
	js.JetStream
	copies map[string]int // 0 means no answer
	asked  *atomic.Int32
}

func (u unsteady) Stream(ctx context.Context, name string) (js.Stream, error) {
	if u.asked != nil {
		u.asked.Add(1)
	}
	n := u.copies[name]
	if n == 0 {
		return nil, context.DeadlineExceeded
	}
	return copies{cfg: js.StreamConfig{Name: name, Replicas: n}}, ctx.Err()
}

func TestKept_NamesWhatIsKeptLessSafely(t *testing.T) {
	t.Parallel()
	u := unsteady{copies: map[string]int{"A": 3, "B": 1, "C": 5}}
	err := natslink.NewKept(u, natslink.Copies{Replicas: 3, InSync: 1}, time.Now, "A", "B", "C", "D").Check(t.Context())
	require.EqualError(t, err, "stream B has 1 copies, want 3\nstream D: context deadline exceeded")
	require.NoError(t, natslink.NewKept(u, natslink.Copies{Replicas: 3, InSync: 1}, time.Now).Check(t.Context()), "nothing is kept")
}

// When a server stops, some streams elect a new leader. That is not a failure.
func TestKept_ToleratesALeaderElection(t *testing.T) {
	t.Parallel()
	now := time.Now()
	u := unsteady{copies: map[string]int{"A": 1}}
	k := natslink.NewKept(u, natslink.Copies{Replicas: 1}, func() time.Time { return now }, "A")
	require.NoError(t, k.Check(t.Context()))
	u.copies["A"] = 0
	now = now.Add(4 * time.Second)
	require.NoError(t, k.Check(t.Context()))
	now = now.Add(time.Second)
	require.ErrorContains(t, k.Check(t.Context()), "stream A: ")
	u.copies["A"] = 1
	require.NoError(t, k.Check(t.Context()))
	u.copies["A"] = 0
	require.NoError(t, k.Check(t.Context()))
}

// Each process checks every second. A healthy stream is requested less often, a degraded one each time.
func TestKept_AsksSeldomAboutHealthyStreams(t *testing.T) {
	t.Parallel()
	now := time.Now()
	u := unsteady{copies: map[string]int{"A": 1}, asked: new(atomic.Int32)}
	k := natslink.NewKept(u, natslink.Copies{Replicas: 1}, func() time.Time { return now }, "A")
	for range 12 {
		require.NoError(t, k.Check(t.Context()))
		now = now.Add(time.Second)
	}
	require.EqualValues(t, 3, u.asked.Load())
	u.copies["A"] = 0
	for range 12 {
		_ = k.Check(t.Context())
		now = now.Add(time.Second)
	}
	require.ErrorContains(t, k.Check(t.Context()), "stream A: ")
	require.EqualValues(t, 16, u.asked.Load())
}

func TestKept_SeesCopiesThatAreMissingInACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, waits for a cluster, and until it misses one of its servers: run without -short")
	}
	servers, nc := natslinktest.Cluster(t)
	api, err := js.New(nc)
	require.NoError(t, err)
	stream := func(name string, replicas int) {
		cfg := js.StreamConfig{Name: name, Subjects: []string{strings.ToLower(name)}, Replicas: replicas}
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := api.CreateOrUpdateStream(ctx, cfg)
			return err == nil
		}, 30*time.Second, 50*time.Millisecond)
	}
	check := func(inSync int) error {
		return natslink.NewKept(api, natslink.Copies{Replicas: 3, InSync: inSync}, time.Now, "A", "B").Check(t.Context())
	}
	stream("A", 3)
	stream("B", 3)
	require.Eventually(t, func() bool { return check(3) == nil }, 30*time.Second, 20*time.Millisecond)
	stream("B", 1)
	require.EqualError(t, check(0), "stream B has 1 copies, want 3")
	stream("B", 3)
	require.Eventually(t, func() bool { return check(3) == nil }, 30*time.Second, 20*time.Millisecond)

	servers[2].Shutdown()
	servers[2].WaitForShutdown()
	require.Eventually(t, func() bool {
		err := check(3)
		return err != nil && strings.Contains(err.Error(), "stream A: 2 of 3 copies are in sync, want 3") &&
			strings.Contains(err.Error(), "stream B: 2 of 3") && check(0) == nil
	}, 60*time.Second, 50*time.Millisecond)
}
