package host

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// From the first answer of /readyz on, every workflow of --workflows can be started, and discovery
// is served. Before it, no answer about a workflow is final.
func TestReadyz_MeansThatWorkflowsAreLoaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const files = 60
	for i := range files {
		doc := strings.Replace(twoSteps, `"id":"two"`, fmt.Sprintf(`"id":"w%d"`, i), 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("w%02d.json", i)), []byte(doc), 0o600))
	}
	o := DefaultOptions()
	o.DataDir, o.Public.HTTPAddr, o.Public.GRPCAddr = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	o.Execution.Workflows = []string{dir}
	require.NoError(t, o.Validate())
	h, err := New(t.Context(), o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c := &harness.Client{Base: h.Addresses().HTTP, Key: "dev-key", HTTP: &http.Client{Transport: &http.Transport{}}}
	defer c.HTTP.CloseIdleConnections()
	started := make(chan error, 1)
	go func() { started <- h.Start(ctx) }()
	last := fmt.Sprintf(`{"workflowId":"w%d"}`, files-1)
	for tries, ready := 0, false; !ready; tries++ {
		if tries < 3 { // many would count as too much load
			a, err := c.Do(ctx, http.MethodPost, "/v1/runs", last, "Idempotency-Key", "the-key")
			require.NoError(t, err)
			require.NotEqual(t, http.StatusNotFound, a.Status, "%s", a.Body)
		}
		a, err := c.Do(ctx, http.MethodGet, "/readyz", "")
		require.NoError(t, err)
		if ready = a.Status == http.StatusOK; !ready {
			require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s", a.Body)
		}
	}
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs", last, "Idempotency-Key", "the-key")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	a, err = c.Do(ctx, http.MethodGet, "/.well-known/openwop", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.NoError(t, <-started)
	ended := make(chan error, 1)
	go func() { ended <- h.Wait(ctx) }()
	cancel()
	require.NoError(t, <-ended)
}
