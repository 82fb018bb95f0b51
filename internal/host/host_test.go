package host

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, natsdtest.LeftBehind()...)
}

// startHost starts a whole host in the test process.
func startHost(t *testing.T) (*Host, *harness.Client) {
	t.Helper()
	o := DefaultOptions()
	o.DataDir, o.Public.HTTPAddr, o.Public.GRPCAddr = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	o.Log.HotWindow = "24h"
	require.NoError(t, o.Validate())
	h, err := New(t.Context(), o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, h.Start(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Wait(ctx) }()
	c := &harness.Client{Base: h.Addresses().HTTP, Key: "dev-key", HTTP: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		c.HTTP.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
		h.Close()
	})
	return h, c
}

const twoSteps = `{"id":"two","name":"two","version":"1","nodes":[
	{"id":"a","typeId":"core.delay","name":"a","position":{"x":0,"y":0},"config":{"delayMs":50},"inputs":{}},
	{"id":"b","typeId":"core.noop","name":"b","position":{"x":0,"y":0},"config":{},"inputs":{}}],
	"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

// creators start runs until they are stopped, and record the acknowledged ids. Each request is
// repeated with its key until it is acknowledged.
type creators struct {
	c    *harness.Client
	stop chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	ids     []string
	refused int
	strange []string // unexpected answers
}

func (k *creators) start(ctx context.Context, n int) {
	k.stop = make(chan struct{})
	for worker := range n {
		k.wg.Go(func() {
			for i := 0; ; i++ {
				for !k.create(ctx, fmt.Sprintf("key-%d-%d", worker, i)) {
					select {
					case <-k.stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
				select {
				case <-k.stop:
					return
				default:
				}
			}
		})
	}
}

// create reports whether the run was acknowledged.
func (k *creators) create(ctx context.Context, key string) bool {
	began := time.Now()
	a, err := k.c.Do(ctx, http.MethodPost, "/v1/runs", `{"workflowId":"two"}`, "Idempotency-Key", key)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.strange = append(k.strange, err.Error())
	case a.Status == http.StatusCreated:
		var v struct{ RunID string }
		if err := a.JSON(&v); err != nil {
			k.strange = append(k.strange, err.Error())
		}
		k.ids = append(k.ids, v.RunID)
		return true
	case a.Status == http.StatusServiceUnavailable && a.Code() == "service_unavailable" && a.Header.Get("Retry-After") != "":
		k.refused++
	default:
		k.strange = append(k.strange, fmt.Sprintf("%d %s", a.Status, a.Body))
	}
	if took := time.Since(began); took > 20*time.Second {
		k.strange = append(k.strange, fmt.Sprintf("an answer after %s", took))
	}
	return false
}

func (k *creators) acknowledged() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ids)
}

func (k *creators) refusals() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}

func status(t *testing.T, c *harness.Client, path string) int {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, path, "")
	require.NoError(t, err)
	return a.Status
}

// The log's server stops and restarts repeatedly while the host runs. Acknowledged runs are there
// once; others were rejected with the right error.
func TestNATS_GoneAndBack(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, takes the log away for seconds: run without -short")
	}
	h, c := startHost(t)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", twoSteps)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)

	k := &creators{c: c}
	k.start(t.Context(), 4)
	const patience = 40 * time.Second
	for range 3 {
		before := k.acknowledged()
		require.Eventually(t, func() bool { return k.acknowledged() > before+20 }, patience, time.Millisecond, "runs are created")
		refused := k.refusals()
		h.nats.Stop()
		require.Eventually(t, func() bool { return status(t, c, "/readyz") == http.StatusServiceUnavailable }, patience, time.Millisecond)
		require.Equal(t, http.StatusOK, status(t, c, "/healthz"), "the process lives")
		require.Eventually(t, func() bool { return k.refusals() > refused }, patience, time.Millisecond, "creating is refused")
		require.NoError(t, h.nats.Restart())
		require.Eventually(t, func() bool { return status(t, c, "/readyz") == http.StatusOK }, patience, time.Millisecond)
	}
	before := k.acknowledged()
	require.Eventually(t, func() bool { return k.acknowledged() > before+20 }, patience, time.Millisecond, "runs are created again")
	close(k.stop)
	k.wg.Wait()
	require.Empty(t, k.strange)

	seen := map[string]bool{}
	for _, id := range k.ids {
		require.False(t, seen[id], "two keys never share a run")
		seen[id] = true
		events, err := c.Finish(t.Context(), id)
		require.NoError(t, err)
		counts := map[string]int{}
		for i, e := range events {
			require.Equal(t, i, e.Sequence, "run %s", id)
			counts[e.Type+e.NodeID]++
		}
		require.Equal(t, map[string]int{
			"run.started":     1,
			"node.starteda":   1,
			"node.completeda": 1,
			"node.startedb":   1,
			"node.completedb": 1,
			"run.completed":   1,
		}, counts, "run %s", id)
	}
	t.Logf("%d runs, %d refusals", len(k.ids), k.refused)
}
