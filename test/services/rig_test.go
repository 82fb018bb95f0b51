// Package services runs a host of five services, each a process of its own, and holds it to
// what only such a host shows.
package services

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

const workflow = `{"id":"one","name":"n","version":"1","nodes":[{"id":"a","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}],` +
	`"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

func needsProcesses(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real processes; left out under -short")
	}
}

// broker is the URL of a NATS server.
func broker(t *testing.T) string {
	t.Helper()
	needsProcesses(t)
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, MaxPayload: 8 << 20,
	})
	require.NoError(t, err)
	begin(t, srv)
	return srv.ClientURL()
}

// begin starts a server, and stops it when the test ends.
func begin(t *testing.T, srv *server.Server) {
	t.Helper()
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.True(t, srv.ReadyForConnections(30*time.Second))
}
