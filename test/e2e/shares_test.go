package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// heldModel is a vendor that answers no call until released, and then rejects it.
type heldModel struct {
	*httptest.Server
	now, most atomic.Int64
	release   func()
}

func newHeldModel(t *testing.T) *heldModel {
	t.Helper()
	released := make(chan struct{})
	s := &heldModel{release: sync.OnceFunc(func() { close(released) })}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that its client disconnected
		n := s.now.Add(1)
		defer s.now.Add(-1)
		for {
			most := s.most.Load()
			if n <= most || s.most.CompareAndSwap(most, n) {
				break
			}
		}
		select {
		case <-released:
		case <-r.Context().Done():
		}
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.release) // first
	return s
}

// A tenant whose runs wait for a model uses all slots and has a long queue. Another tenant's new
// run starts immediately, within its workflow's concurrency limit.
func TestShares_ABusyTenantDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	needsHost(t)
	model := newHeldModel(t)
	h := harness.Start(t, "--max-runs", "4", "--provider", "slow="+model.URL+"/v1", "--default-model", "slow/m", "--unknown-models", "trust",
		"--api-key", "acme-key=acme:*", "--api-key", "beta-key=beta:*")
	acme, beta := h.Client("acme-key"), h.Client("beta-key")
	put := func(c *harness.Client, id, node, settings string) {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", `{"id":"`+id+`","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":`+settings+
			`,"nodes":[{"id":"a","typeId":"`+node+`","name":"n","position":{"x":0,"y":0},"inputs":{},"config":`+map[string]string{"core.noop": `{}`, "core.ai.callPrompt": `{"prompt":"hello"}`}[node]+`}]}`)
		require.NoError(t, err)
		require.Less(t, a.Status, http.StatusBadRequest, "%s", a.Body)
	}
	put(acme, "ask", "core.ai.callPrompt", `{}`)
	put(beta, "quick", "core.noop", `{}`)
	put(beta, "one-by-one", "core.ai.callPrompt", `{"concurrency":{"limit":1}}`)
	for range 40 {
		start(t, acme, `{"workflowId":"ask"}`)
	}
	require.Eventually(t, func() bool { return model.now.Load() == 4 }, time.Minute, 10*time.Millisecond, "all slots are taken")

	_, err := beta.Finish(within(t, time.Minute), start(t, beta, `{"workflowId":"quick"}`))
	require.NoError(t, err, "it ends while the model holds the other tenant's runs")

	var limited []string
	for range 3 {
		limited = append(limited, start(t, beta, `{"workflowId":"one-by-one"}`))
	}
	require.Eventually(t, func() bool { return model.now.Load() == 5 }, time.Minute, 10*time.Millisecond, "one of them is executed, with a slot of the reserve")
	require.Never(t, func() bool { return model.now.Load() > 5 }, 500*time.Millisecond, 20*time.Millisecond)
	model.release()
	for _, id := range limited {
		_, err := beta.Finish(within(t, time.Minute), id)
		require.NoError(t, err)
	}
	require.EqualValues(t, 5, model.most.Load())

	a, err := beta.Do(t.Context(), http.MethodPost, "/v1/workflows", `{"id":"bad","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{"rate":{"limit":0,"periodMs":5}},`+
		`"nodes":[{"id":"a","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}]}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "/settings/rate/limit")
	require.Contains(t, string(a.Body), "/settings/rate/periodMs")
}

// A host killed with a permit held restarts on its own data without waiting for the old lease, and
// still executes one run at a time.
func TestShares_ARestartedHostFreesItsPermits(t *testing.T) {
	t.Parallel()
	needsHost(t)
	model := newHeldModel(t)
	h := harness.Start(t, "--lease", "5m", "--api-key", "acme-key=acme:*", "--provider", "slow="+model.URL+"/v1", "--default-model", "slow/m", "--unknown-models", "trust")
	c := h.Client("acme-key")
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", `{"id":"one-by-one","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{"concurrency":{"limit":1}},`+
		`"nodes":[{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"inputs":{},"config":{"prompt":"hello"},"settings":{"onUnknownOutcome":"retry"}}]}`)
	require.NoError(t, err)
	require.Less(t, a.Status, http.StatusBadRequest, "%s", a.Body)
	var ids []string
	for range 2 {
		ids = append(ids, start(t, c, `{"workflowId":"one-by-one"}`))
	}
	require.Eventually(t, func() bool { return model.now.Load() == 1 }, time.Minute, 10*time.Millisecond)
	h.Kill()
	require.Eventually(t, func() bool { return model.now.Load() == 0 }, time.Minute, 10*time.Millisecond)
	h.Restart()
	require.Eventually(t, func() bool { return model.now.Load() == 1 }, time.Minute, 10*time.Millisecond, "a run is executed again")
	require.Never(t, func() bool { return model.now.Load() > 1 }, 500*time.Millisecond, 20*time.Millisecond)
	model.release()
	c = h.Client("acme-key") // its address has changed
	for _, id := range ids {
		_, err := c.Finish(within(t, time.Minute), id)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, model.most.Load())
}
