package jetstream

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
)

func TestDurable_CountsTheCopiesThatAreInSync(t *testing.T) {
	t.Parallel()
	current, behind, gone := &js.PeerInfo{Current: true}, &js.PeerInfo{}, &js.PeerInfo{Current: true, Offline: true}
	of := func(peers ...*js.PeerInfo) *js.ClusterInfo { return &js.ClusterInfo{Leader: "a", Replicas: peers} }
	for name, tc := range map[string]struct {
		replicas, inSync int
		cluster          *js.ClusterInfo
		want             string
	}{
		"one server":                        {1, 0, nil, ""},
		"one copy in a cluster":             {1, 0, of(), ""},
		"all of three":                      {3, 0, of(current, current), ""},
		"a majority":                        {3, 0, of(current, behind), ""},
		"a majority, and all are wanted":    {3, 3, of(current, behind), "2 of its 3 copies"},
		"one that has gone, and all wanted": {3, 3, of(current, gone), "2 of its 3 copies"},
		"the leader alone":                  {3, 0, of(behind, gone), "1 of its 3 copies"},
		"the leader alone, which is enough": {3, 1, of(behind, gone), ""},
		"no leader":                         {3, 0, &js.ClusterInfo{Replicas: []*js.PeerInfo{current, current}}, "0 of its 3 copies"},
		"a majority of five":                {5, 0, of(current, current, behind, behind), ""},
		"less than a majority of five":      {5, 0, of(current, behind, behind, behind), "2 of its 5 copies"},
	} {
		err := Config{Replicas: tc.replicas, InSync: tc.inSync}.durable(&js.StreamInfo{Config: js.StreamConfig{Replicas: tc.replicas}, Cluster: tc.cluster})
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, runlog.ErrUnavailable, name)
		require.ErrorContains(t, err, tc.want, name)
	}
}

// three are servers of one cluster.
func three(t *testing.T) []*server.Server {
	t.Helper()
	var (
		all   []*server.Server
		ports [3]int
		urls  []string
		held  []net.Listener
	)
	for i := range ports {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ports[i] = lis.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of TCP
		urls = append(urls, "nats://"+lis.Addr().String())
		held = append(held, lis)
	}
	for _, lis := range held { // the servers take them
		require.NoError(t, lis.Close())
	}
	for i := range 3 {
		opts := &server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]},
			Routes: server.RoutesFromStr(strings.Join(urls, ",")),
		}
		s, err := server.NewServer(opts)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	return all
}

// A cluster that has lost a server takes writes, and keeps them on fewer disks than it
// was told to.
func TestCheck_SeesACopyThatIsNotInSync(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits until a cluster misses one of its servers; left out under -short")
	}
	servers := three(t)
	nc, err := nats.Connect(servers[0].ClientURL() + "," + servers[1].ClientURL() + "," + servers[2].ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cfg := DefaultConfig()
	cfg.Replicas, cfg.Patience = 3, 2*time.Second
	var log *Log
	require.Eventually(t, func() bool { log, err = Open(t.Context(), nc, cfg); return err == nil }, 30*time.Second, 50*time.Millisecond)
	cfg.InSync = 3
	strict := &Log{cfg: cfg, link: log.link, js: log.js, stream: log.stream}
	require.Eventually(t, func() bool { return strict.Check(t.Context()) == nil }, 30*time.Second, 20*time.Millisecond)

	info, err := log.stream.Info(t.Context())
	require.NoError(t, err)
	for _, s := range servers {
		if s.Name() == info.Cluster.Replicas[0].Name {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
	require.Eventually(t, func() bool { // the connection may have been to the server that is gone
		err := strict.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "2 of its 3 copies are in sync, and 3 must be") && log.Check(t.Context()) == nil
	}, 60*time.Second, 50*time.Millisecond)
}
