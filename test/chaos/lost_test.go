package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

// Half of the file of the log is gone. The host serves the rest and reports the loss, also after
// another start. No run is listed that reads do not find.
func TestLostRecords_AreReported(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	harness.InOneProcess(t, "a NATS cluster has other copies; this tests `waybill dev`")
	for name, killed := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := harness.Start(t, "--metrics-addr", "127.0.0.1:0")
			journal.Deploy(t, host)
			c := host.Client(journal.Key)
			for range 12 {
				a := create(t, c, `{"workflowId":"`+journal.GateWorkflow+`"}`)
				require.Equal(t, http.StatusCreated, a.Status)
				id := runID(t, a)
				require.Eventually(t, func() bool { return status(t, c, id) == "waiting-approval" }, wholeWithin, lease/100)
			}
			host.Stop()
			msgs := filepath.Join(host.Dir(), "nats", "jetstream", "$G", "streams", "WAYBILL_RUNS", "msgs")
			block := filepath.Join(msgs, "1.blk")
			st, err := os.Stat(block)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(block, st.Size()/2))
			if killed {
				require.NoError(t, os.Remove(filepath.Join(msgs, "index.db")))
				require.NoError(t, os.Remove(filepath.Join(host.Dir(), "nats", "waybill.sums")))
			}
			for range 2 {
				host.Launch()
				reportsLoss(t, host)
				host.Stop()
			}
		})
	}
}

func reportsLoss(t *testing.T, host *harness.Host) {
	t.Helper()
	c := host.Client(journal.Key)
	var ready struct{ Warnings []string }
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/readyz", "")
		return err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &ready) == nil && len(ready.Warnings) > 0
	}, wholeWithin, lease/10)
	host.AwaitLog("level=ERROR")
	require.NotEqual(t, "0", metric(t, host, `waybill_log_damaged_records{outcome="lost"}`))
	out, code := harness.Command(t, "doctor", "--url", host.HTTP)
	require.NotZero(t, code, out)
	require.Regexp(t, `data +fail`, out)

	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs?limit=100", "")
	require.NoError(t, err)
	var list struct{ Runs []struct{ RunID string } }
	require.NoError(t, json.Unmarshal(a.Body, &list))
	require.NotEmpty(t, list.Runs)
	served := 0
	for _, r := range list.Runs {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+r.RunID, "")
		require.NoError(t, err)
		if a.Status == http.StatusOK {
			served++
			continue
		}
		require.Equal(t, "log_damaged", a.Code(), "%d %s", a.Status, a.Body)
	}
	require.GreaterOrEqual(t, served, 5, "runs in the first half are served")
	a = create(t, c, `{"workflowId":"chaos-one"}`)
	require.Equal(t, http.StatusCreated, a.Status)
	_, err = c.Finish(t.Context(), runID(t, a))
	require.NoError(t, err)
	require.NotContains(t, strings.ToLower(host.Log()), "panic", fmt.Sprint(ready.Warnings))
}
