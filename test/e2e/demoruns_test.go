package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// shown returns the demo runs of a host by workflow, once all have reached their final or waiting
// state.
func shown(t *testing.T, c *harness.Client) map[string]row {
	t.Helper()
	rests := map[string]string{"demo-recovered": "completed", "demo-refused": "failed", "demo-approval": "waiting-external"}
	var got map[string]row
	require.Eventually(t, func() bool {
		var list struct{ Runs []row }
		require.NoError(t, do(t, c, http.MethodGet, "/v1/runs?tag=demo", "").JSON(&list))
		got = map[string]row{}
		for _, r := range list.Runs {
			if r.Status != rests[r.WorkflowID] {
				return false
			}
			got[r.WorkflowID] = r
		}
		return len(got) == len(rests) && len(list.Runs) == len(rests)
	}, time.Minute, 20*time.Millisecond)
	return got
}

func TestDev_L1_BeginsWithThreeRunsOnce(t *testing.T) {
	harness.InOneProcess(t, "demo runs belong to waybill dev")
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	h := harness.StartIn(t, dir, "--demo-runs=true", "--drain-timeout", "1m")
	c := h.Client("dev-key")
	runs := shown(t, c)
	h.AwaitLog("#code=", h.Dir())
	require.Regexp(t, `web +http://\S+/console/#code=\S+\n`, h.Log())

	events, err := c.Finish(within(t, time.Minute), runs["demo-recovered"].RunID)
	require.NoError(t, err)
	said := ""
	for _, e := range events {
		said += e.Type + " "
	}
	require.Contains(t, said, "model.capability.substituted")
	require.Contains(t, said, "envelope.retry.attempted")
	require.Contains(t, string(do(t, c, http.MethodGet, "/v1/runs/"+runs["demo-refused"].RunID, "").Body), "envelope_contract_violation")
	asks := do(t, c, http.MethodGet, "/v1/interrupts", "")
	require.Contains(t, string(asks.Body), "ui.a2ui-surface")

	// Ctrl-C.
	began := time.Now()
	require.NoError(t, syscall.Kill(h.PID, syscall.SIGINT))
	require.Equal(t, 130, h.Ended().ExitCode())
	require.Less(t, time.Since(began), 30*time.Second, "waiting runs do not delay the end")

	again := harness.StartIn(t, dir, "--demo-runs=true")
	c = again.Client("dev-key")
	require.Equal(t, runs, shown(t, c), "the same, and no more")
	answer := do(t, c, http.MethodPost, "/v1/runs/"+runs["demo-approval"].RunID+"/interrupts/approve",
		`{"resumeValue":{"decision":"full","reason":"It was our mistake.","voucher":true}}`)
	require.Equal(t, http.StatusOK, answer.Status, "%s", answer.Body)
	_, err = c.Finish(within(t, time.Minute), runs["demo-approval"].RunID)
	require.NoError(t, err)
}

func TestDev_L1_DemoRunsCanBeDisabled(t *testing.T) {
	t.Parallel()
	h, _ := consoleHost(t)
	c := h.Client(consoleKey)
	require.Contains(t, string(do(t, c, http.MethodGet, "/v1/runs", "").Body), `"runs":[]`)
	require.NotContains(t, string(do(t, c, http.MethodGet, "/v1/workflows", "").Body), "demo-")
}

func TestDev_L1_NamesTheFlagOfABusyPort(t *testing.T) {
	harness.InOneProcess(t, "it is about the flags of waybill dev")
	t.Parallel()
	h, _ := consoleHost(t)
	addr := strings.TrimPrefix(h.HTTP, "http://")
	out, status := harness.Command(t, "dev", "--data-dir", t.TempDir(), "--http-addr", addr, "--grpc-addr", "127.0.0.1:0")
	require.Equal(t, 1, status)
	require.Contains(t, out, "--http-addr "+addr)
	require.Contains(t, out, "give another address, or port 0 for a free one")
}
