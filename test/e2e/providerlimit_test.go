package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// slowModel answers after a moment and counts its concurrent calls.
type slowModel struct {
	mu                 sync.Mutex
	calls, flying, top int
}

func (m *slowModel) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	m.calls++
	m.flying++
	m.top = max(m.top, m.flying)
	m.mu.Unlock()
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the model's work
	m.mu.Lock()
	m.flying--
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// ask starts runs that call the model once each.
func ask(t *testing.T, c *harness.Client, runs int) (ids []string) {
	t.Helper()
	const flow = `{"id":"ask","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` +
		`{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"config":{"prompt":"hello","provider":"box","model":"m"},"inputs":{}}]}`
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", flow)
	require.NoError(t, err)
	require.Less(t, a.Status, http.StatusBadRequest, "%s", a.Body)
	for range runs {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"ask"}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		var v struct{ RunID string }
		require.NoError(t, a.JSON(&v))
		ids = append(ids, v.RunID)
	}
	return ids
}

// Calls beyond a provider's limit wait, and no run fails for it.
func TestProviderSettings_QueueCallsOfAllTenants(t *testing.T) {
	t.Parallel()
	needsHost(t)
	model := &slowModel{}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{"box":{"maxConcurrent":2}}}`), 0o600))
	h := harness.Start(t, "--provider-settings", file, "--provider", "box="+server.URL, "--api-key", "dev-key=default:*", "--api-key", "their-key=other:*")
	const runs = 8
	made := map[string][]string{}
	for _, key := range []string{"dev-key", "their-key"} {
		made[key] = ask(t, h.Client(key), runs)
	}
	for key, ids := range made {
		for _, id := range ids {
			events, err := h.Client(key).Finish(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, "run.completed", events[len(events)-1].Type)
		}
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	require.Equal(t, 2*runs, model.calls)
	require.LessOrEqual(t, model.top, 2)
}

// busyModel rejects calls for a while from the first one on.
type busyModel struct {
	mu              sync.Mutex
	until           time.Time
	refused, served int
}

func (m *busyModel) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	const seconds = 3
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until.IsZero() {
		m.until = time.Now().Add(seconds * time.Second)
	}
	if time.Now().Before(m.until) {
		m.refused++
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	m.served++
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// After a 429 the queued calls wait as the vendor requests: it rejects one call, not eight.
func TestProviderSettings_ARefusedProviderIsNotCalled(t *testing.T) {
	t.Parallel()
	needsHost(t)
	model := &busyModel{}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{"box":{"maxConcurrent":1}}}`), 0o600))
	c := harness.Start(t, "--provider-settings", file, "--provider", "box="+server.URL).Client("dev-key")
	const runs = 8
	for _, id := range ask(t, c, runs) {
		events, err := c.Finish(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "run.completed", events[len(events)-1].Type)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	require.Equal(t, runs, model.served)
	require.Equal(t, 1, model.refused)
}
