package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The queue of a receiver that is down is bounded, and its tenant can see how much was dropped
// (docs/webhooks.md, "How much is queued").
func TestWebhooks_LimitTheRunsThatWaitForAReceiver(t *testing.T) {
	harness.InOneProcess(t, "it reads the metrics of all services at one address")
	t.Parallel()
	needsHost(t)
	const limit, more = 100, 5
	h := harness.StartWith(t, harness.Options{
		Args: []string{
			"--test-seams", "--durability", "process", "--metrics-addr", "127.0.0.1:0",
			"--webhook-max-runs", fmt.Sprint(limit), "--api-key", testKey + "=acme:*",
		},
		Env: []string{allowPrivate},
	})
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(to.Close)
	c := h.Client(testKey)
	put(t, c, one("quick", "core.noop", "{}"))
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.completed"]}`, to.URL))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	for range limit + more {
		start(t, c, `{"workflowId":"quick"}`)
	}
	var hook struct {
		DroppedEvents                 int
		FirstDroppedAt, LastDroppedAt string
	}
	require.Eventually(t, func() bool {
		var page struct {
			Webhooks []struct {
				DroppedEvents                 int
				FirstDroppedAt, LastDroppedAt string
			}
		}
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/webhooks", "")
		if err != nil || a.JSON(&page) != nil || len(page.Webhooks) != 1 {
			return false
		}
		hook = page.Webhooks[0]
		return hook.DroppedEvents == more
	}, time.Minute, 50*time.Millisecond, "%d runs beyond the limit", more)
	require.NotEmpty(t, hook.FirstDroppedAt)
	require.LessOrEqual(t, hook.FirstDroppedAt, hook.LastDroppedAt)
	require.Contains(t, scraped(t, h), fmt.Sprintf("waybill_webhook_dropped_events_total %d\n", more))
	require.Contains(t, scraped(t, h), fmt.Sprintf("waybill_webhook_pending_runs %d\n", limit))
	h.AwaitLog("too many runs with pending deliveries")
	require.Equal(t, 1, strings.Count(h.Log(), "too many runs with pending deliveries"), "one line for all of them")
}
