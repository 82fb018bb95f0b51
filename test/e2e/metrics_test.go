package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// scraped is the text of a host's metrics.
func scraped(t *testing.T, h *harness.Host) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Metrics, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}

// OpenWOP host contract §10.3.
func TestMetrics_CountARunOnceWithoutNamesOfTenants(t *testing.T) {
	harness.InOneProcess(t, "it reads the metrics of all services at one address")
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--metrics-addr", "127.0.0.1:0", "--api-key", testKey+"=tenant-canary:*")
	c := h.Client(testKey)
	put(t, c, one("quiet", "core.noop", "{}"))
	id := start(t, c, `{"workflowId":"quiet"}`)
	want := []string{
		`openwop_run_created_total{openwop_workflow_id="quiet"} 1`,
		`openwop_run_completed_total{openwop_run_status="completed",openwop_workflow_id="quiet"} 1`,
		`openwop_node_attempts_total{openwop_node_type="core.noop"} 1`,
		`openwop_node_completed_total{openwop_node_status="completed",openwop_node_type="core.noop"} 1`,
		`openwop_run_duration_seconds_count{openwop_run_status="completed",openwop_workflow_id="quiet"} 1`,
		`openwop_run_backlog_seconds_count 1`, `openwop_queue_enqueued_total 1`, `openwop_run_claim_conflicts_total 0`,
		"openwop_run_active 0", "openwop_queue_depth 0",
	}
	var text string
	require.Eventually(t, func() bool {
		text = scraped(t, h)
		for _, line := range want {
			if !strings.Contains(text, line+"\n") {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "%v", want)
	require.NotContains(t, text, id)
	require.NotContains(t, text, "tenant-canary")
	require.NotContains(t, text, `"gate"`, "the node's id")
}

// The names, units and types of metrics are as `promtool check metrics` wants them.
func TestMetrics_PassTheLinter(t *testing.T) {
	harness.InOneProcess(t, "it reads the metrics of all services at one address")
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--metrics-addr", "127.0.0.1:0", "--rate-limit", "key=1000/s")
	c := h.Client("dev-key")
	id := start(t, c, `{"workflowId":"triage","inputs":{"mail":"x"}}`)
	_, err := c.Finish(t.Context(), id)
	require.NoError(t, err)
	text := scraped(t, h)
	require.Contains(t, text, "gen_ai_client_token_usage_bucket")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}
