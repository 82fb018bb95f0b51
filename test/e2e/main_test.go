// Package e2e tests a real host over HTTP, gRPC and NATS, as users use it.
package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	shared.Close()
}

// needsHost skips tests that start processes under -short.
func needsHost(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
}

// testKey may use test-only features.
const testKey = "hk_test_e2e"

// seamArgs are the arguments of a host with the protocol's fixtures and test seams.
func seamArgs(t *testing.T) []string {
	t.Helper()
	return []string{
		"--test-seams", "--workflows", filepath.Join(schematest.Dir(t), "fixtures"), "--lease", "1s",
		"--api-key", testKey + "=acme:*", "--api-key", "other=beta:*",
	}
}

// seamHost is a fresh host with the protocol's fixtures and test seams, for tests that script its
// model.
func seamHost(t *testing.T) *harness.Client {
	t.Helper()
	needsHost(t)
	return harness.Start(t, seamArgs(t)...).Client(testKey)
}

// shared is such a host for all other tests.
var shared struct {
	harness.Shared
	once sync.Once // sets its arguments
}

// sharedHost returns the shared host.
func sharedHost(t *testing.T) (*harness.Host, *harness.Client) {
	t.Helper()
	needsHost(t)
	args := seamArgs(t)
	shared.once.Do(func() { shared.Args = args })
	h := shared.Host(t)
	return h, h.Client(testKey)
}

// within limits the time of a test's requests.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// start creates a run.
func start(t *testing.T, c *harness.Client, body string) string {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", body)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v struct{ RunID string }
	require.NoError(t, json.Unmarshal(a.Body, &v))
	return v.RunID
}

// finish waits for a run's end and validates everything it returned against the schemas.
func finish(t *testing.T, c *harness.Client, s *harness.Schemas, runID string) (all []harness.Event, end snapshot) {
	t.Helper()
	events, err := c.Finish(within(t, 30*time.Second), runID)
	require.NoError(t, err)
	for i, e := range events {
		require.Equal(t, i, e.Sequence)
		require.NoError(t, s.Event(e.Raw))
	}
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	require.NoError(t, s.Validate("run-snapshot.schema.json", a.Body))
	var snap snapshot
	require.NoError(t, json.Unmarshal(a.Body, &snap))
	return events, snap
}

type snapshot struct {
	Status    string
	Variables map[string]json.RawMessage
	Error     *struct{ Code, Message string }
}

// names lists the events' types.
func names(events []harness.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}
