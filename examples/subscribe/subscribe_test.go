package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// A reader prints the events of a tenant, and goes on where it ended.
func TestExamples_ReadOnWhereTheyEnded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts real processes; left out under -short")
	}
	bin := filepath.Join(t.TempDir(), "subscribe")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, command := range map[string][]string{"go": {bin}, "js": {"node", "js/subscribe.js"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("js/node_modules"); name == "js" && err != nil {
				t.Skip("js/node_modules is not there; `npm --prefix examples/subscribe/js ci` installs it")
			}
			h := harness.Start(t, "--nats-addr", "127.0.0.1:0", "--durability", "process")
			c := h.Client("dev-key")
			var want []string
			for range 2 {
				a, err := c.Do(t.Context(), "POST", "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"hello"}}`)
				require.NoError(t, err)
				var v struct{ RunID string }
				require.NoError(t, a.JSON(&v), "%s", a.Body)
				events, err := c.Finish(t.Context(), v.RunID)
				require.NoError(t, err)
				for _, e := range events {
					want = append(want, e.EventID)
				}
			}
			got := read(t, h, 3, command)
			require.GreaterOrEqual(t, len(got), 3)
			require.Less(t, len(got), len(want))
			require.Equal(t, want, append(got, read(t, h, len(want)-len(got), command)...))
		})
	}
}

// read gives the ids of the events that an example prints.
func read(t *testing.T, h *harness.Host, count int, command []string) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // G204: ours
	c.Env = append(os.Environ(), "NATS_URL="+h.NATS, "TENANT=default", "NATS_PASSWORD=dev-key", "COUNT="+strconv.Itoa(count), "NATS_NKEY=")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s", stderr.String())
	for line := range strings.Lines(string(out)) {
		var e struct{ EventID string }
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		ids = append(ids, e.EventID)
	}
	return ids
}
