package natslinktest

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// Cluster starts three servers of one cluster, and connects to them; all end with the test. They may
// not have found each other yet.
func Cluster(t *testing.T) ([]*server.Server, *nats.Conn) {
	t.Helper()
	var (
		all          []*server.Server
		ports        [3]int
		routes, urls []string
		held         []net.Listener
	)
	for i := range ports {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ports[i] = lis.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of TCP
		routes = append(routes, "nats://"+lis.Addr().String())
		held = append(held, lis)
	}
	for _, lis := range held { // the servers take them
		require.NoError(t, lis.Close())
	}
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port},
			Routes: server.RoutesFromStr(strings.Join(routes, ",")),
		})
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all, urls = append(all, s), append(urls, s.ClientURL())
	}
	nc, err := nats.Connect(strings.Join(urls, ","))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return all, nc
}
