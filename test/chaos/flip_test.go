package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

// Two bits of a record flip while the host is down, which cannot be repaired. The run it belongs to
// is quarantined, and all others are readable, including later ones.
func TestFlippedBits_QuarantineTheirRunAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	harness.InOneProcess(t, "a NATS cluster repairs its files itself; this tests `waybill dev`")
	for name, end := range map[string]func(*harness.Host){
		"stopped": func(h *harness.Host) { h.Stop() }, "killed": (*harness.Host).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := harness.Start(t, "--metrics-addr", "127.0.0.1:0")
			journal.Deploy(t, host)
			c := host.Client(journal.Key)
			var ids []string
			for i := range 8 {
				a := create(t, c, fmt.Sprintf(`{"workflowId":%q,"inputs":{"pad":"pad-%d"}}`, journal.GateWorkflow, i))
				require.Equal(t, http.StatusCreated, a.Status)
				ids = append(ids, runID(t, a))
			}
			end(host)
			const bad = 3
			flip(t, filepath.Join(host.Dir(), "nats", "jetstream", "$G", "streams", "WAYBILL_RUNS", "msgs", "1.blk"), fmt.Sprintf("pad-%d", bad))
			// Delete the read model: it has copies of the frames.
			files, err := filepath.Glob(filepath.Join(host.Dir(), "waybill.db*"))
			require.NoError(t, err)
			for _, f := range files {
				require.NoError(t, os.Remove(f))
			}
			host.Launch()
			c = host.Client(journal.Key)

			a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+ids[bad], "")
			require.NoError(t, err)
			require.Equal(t, http.StatusInternalServerError, a.Status, "%s", a.Body)
			require.Equal(t, "log_damaged", a.Code())
			require.Contains(t, string(a.Body), `"lastSequence"`)
			require.NotContains(t, string(a.Body), "pad-", "no damaged record may be shown")
			damagedRunIsListed(t, c, ids, bad)
			a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs/"+ids[bad]+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`)
			require.NoError(t, err)
			require.Equal(t, http.StatusInternalServerError, a.Status, "the damaged run must not continue: %s", a.Body)
			for i, id := range ids {
				if i == bad {
					continue
				}
				require.Eventually(t, func() bool {
					a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`)
					return err == nil && a.Status == http.StatusOK
				}, wholeWithin, lease/10, "run %d must continue", i)
				events, err := c.Finish(t.Context(), id)
				require.NoError(t, err)
				journal.CheckLog(t, id, journal.GateWorkflow, events)
			}
			require.Equal(t, "1", metric(t, host, "waybill_eventlog_damaged_frames_total"))
		})
	}
}

// damagedRunIsListed checks that lists agree with reads: the damaged run has the code of its reads,
// and a list of that code has no other run.
func damagedRunIsListed(t *testing.T, c *harness.Client, ids []string, bad int) {
	t.Helper()
	codes := func(query string) map[string]string {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs?limit=50"+query, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		var list struct {
			Runs []struct{ RunID, ErrorCode string }
		}
		require.NoError(t, json.Unmarshal(a.Body, &list))
		out := map[string]string{}
		for _, r := range list.Runs {
			out[r.RunID] = r.ErrorCode
		}
		return out
	}
	want := map[string]string{}
	for _, id := range ids {
		want[id] = ""
	}
	want[ids[bad]] = "log_damaged"
	require.Equal(t, want, codes(""))
	require.Equal(t, map[string]string{ids[bad]: "log_damaged"}, codes("&filter=code%3Alog_damaged"))
}

// flip flips two bits in a file, in the first and the last letter of a text.
func flip(t *testing.T, file, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	at := bytes.Index(b, []byte(text))
	require.Positive(t, at)
	b[at] ^= 0x10
	b[at+len(text)-1] ^= 0x10
	require.NoError(t, os.WriteFile(file, b, 0o600))
}

// metric returns a value of the host's metrics.
func metric(t *testing.T, host *harness.Host, name string) string {
	t.Helper()
	res, err := http.Get(host.Metrics)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
