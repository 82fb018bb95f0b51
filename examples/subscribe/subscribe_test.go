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

// A reader prints the events of a tenant, and resumes where it ended.
func TestExamples_ResumeWhereTheyEnded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	bin := filepath.Join(t.TempDir(), "subscribe")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, command := range map[string][]string{"go": {bin}, "js": {"node", "js/subscribe.js"}, "sh": {"sh", "subscribe.sh"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("js/node_modules"); name == "js" && err != nil {
				t.Skip("SKIPPED, js/node_modules is missing: run `npm --prefix examples/subscribe/js ci`")
			}
			if _, err := exec.LookPath("nats"); name == "sh" && err != nil {
				t.Skip("SKIPPED, the nats command is missing: run `make integration ONLY=readers`")
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
			if name == "sh" { // it prints one frame per line
				var got []string
				for len(got) < len(want) {
					got = append(got, read(t, h, 1, command)...)
				}
				require.Equal(t, want, got)
				return
			}
			got := read(t, h, 3, command)
			require.GreaterOrEqual(t, len(got), 3)
			require.Less(t, len(got), len(want))
			require.Equal(t, want, append(got, read(t, h, len(want)-len(got), command)...))
		})
	}
}

// read returns the ids of the events that an example prints, one event or one frame per line.
func read(t *testing.T, h *harness.Host, count int, command []string) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // G204: our own command
	c.Env = append(os.Environ(), "NATS_URL="+h.NATS, "TENANT=default", "NATS_PASSWORD=dev-key", "COUNT="+strconv.Itoa(count), "NATS_NKEY=")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s", stderr.String())
	for line := range strings.Lines(string(out)) {
		type event struct{ EventID string }
		var some []event
		switch line[0] {
		case '[':
			require.NoError(t, json.Unmarshal([]byte(line), &some), line)
		case '{':
			some = make([]event, 1)
			require.NoError(t, json.Unmarshal([]byte(line), &some[0]), line)
		}
		for _, e := range some {
			if e.EventID != "" { // else it is the record of a run
				ids = append(ids, e.EventID)
			}
		}
	}
	return ids
}
