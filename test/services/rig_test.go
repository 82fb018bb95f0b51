// Package services tests a host of five services in separate processes, for behaviour that a host
// in one process cannot show.
package services

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"waybill.dev/waybill/internal/natslink/natslinktest"
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
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
}

// broker is the URL of a NATS server.
func broker(t *testing.T) string {
	t.Helper()
	needsProcesses(t)
	return natslinktest.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20}).ClientURL()
}
