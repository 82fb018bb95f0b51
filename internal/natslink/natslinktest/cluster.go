package natslinktest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
)

// Cluster starts a cluster of three servers and connects to them; all end with the test. They may
// not have found each other yet.
func Cluster(t *testing.T) ([]*server.Server, *nats.Conn) {
	t.Helper()
	all := ClusterOf(t, func() *server.Options {
		return &server.Options{JetStream: true, StoreDir: t.TempDir()}
	})
	var urls []string
	for _, s := range all {
		urls = append(urls, s.ClientURL())
	}
	nc, err := nats.Connect(strings.Join(urls, ","))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return all, nc
}

// ClusterOf starts a cluster of three servers with the given options.
func ClusterOf(t *testing.T, options func() *server.Options) []*server.Server {
	t.Helper()
	var (
		all    []*server.Server
		ports  [3]int
		routes []string
	)
	for i := range ports {
		port := freeport.Take(t)
		ports[i], _ = strconv.Atoi(port) // a number
		routes = append(routes, "nats://127.0.0.1:"+port)
	}
	for i, port := range ports {
		opts := options()
		opts.ServerName, opts.Routes = fmt.Sprint("n", i), server.RoutesFromStr(strings.Join(routes, ","))
		opts.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}
		all = append(all, Serve(t, opts))
	}
	return all
}

// Serve starts a server on localhost that ends with the test, on a random port by default.
func Serve(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	opts.Host, opts.Port = "127.0.0.1", cmp.Or(opts.Port, server.RANDOM_PORT)
	opts.NoLog, opts.NoSigs = true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(30*time.Second), "the server listens")
	return s
}
