package e2e

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/harness"
)

// openLog opens the log of a stopped host.
func openLog(t *testing.T, h *harness.Host) (*jetstream.Log, func()) {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: filepath.Join(h.Dir(), "nats"), Log: slog.New(slog.DiscardHandler)}, "newer")
	require.NoError(t, err)
	nc, err := srv.Connect("newer")
	require.NoError(t, err)
	log, err := jetstream.Open(t.Context(), nc, jetstream.DefaultConfig())
	require.NoError(t, err)
	return log, func() {
		nc.Close()
		srv.Stop()
	}
}

// upgraded continues a run like a host of the next engine version.
func upgraded(t *testing.T, log *jetstream.Log, runID string) {
	t.Helper()
	last, err := log.Last(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	payload := json.RawMessage(`{"level":"info","message":"of a later version"}`)
	e := wire.Draft{Type: wire.EventLogAppended, Payload: payload}.Place(runID, last.Head().Next, time.Now())
	e.EngineVersion = "2"
	_, err = log.Append(t.Context(), frame.New(last.Run, subject.Wake, last.Head(), []wire.Event{e}).By("newer-1"), last.Pos)
	require.NoError(t, err)
}

// OpenWOP host contract §3.2, §12 no. 44: after a downgrade, or next to a newer host.
func TestEngine_ARunOfALaterVersionIsReadAndNotExecuted(t *testing.T) {
	harness.InOneProcess(t, "it opens the embedded log while the host is down")
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--lease", "1s", "--api-key", testKey+"=acme:*")
	c := h.Client(testKey)
	put(t, c, one("asks", "core.approvalGate", `{"title":"t","actions":["accept"]}`))
	put(t, c, one("quiet", "core.noop", "{}"))
	id := start(t, c, `{"workflowId":"asks"}`)
	status := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id, "")
			return err == nil && strings.Contains(string(a.Body), `"status":"`+want+`"`)
		}, time.Minute, 10*time.Millisecond)
	}
	status("waiting-approval")
	twice := start(t, c, putPair(t, c))
	_, err := c.Finish(within(t, time.Minute), twice)
	require.NoError(t, err)
	h.Kill()
	log, stop := openLog(t, h)
	upgraded(t, log, id)
	older := recordOtherwise(t, log, twice, "b")
	stop()
	h.Launch()
	c = h.Client(testKey)
	t.Run("a run of an earlier version", func(t *testing.T) { checkDivergence(t, c, older) })

	for path, body := range map[string]string{
		"/cancel": `{}`, ":pause": `{}`, ":resume": `{}`, ":fork": `{"mode":"replay","fromSeq":0}`, "/interrupts/gate": `{"resumeValue":{"action":"accept"}}`,
	} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+path, body)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s: %s", path, a.Body)
		var e struct {
			Error   string
			Details map[string]any
		}
		require.NoError(t, a.JSON(&e))
		require.Equal(t, "engine_version_mismatch", e.Error, path)
		require.Equal(t, map[string]any{"runId": id, "persistedVersion": 2.0, "currentVersion": 1.0, "retryAfter": 5.0}, e.Details, path)
		require.NotEmpty(t, a.Header.Get("Retry-After"), path)
	}
	status("waiting-approval")
	for _, path := range []string{"/events/poll?timeout=1", "/debug-bundle"} {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Body)
		require.Contains(t, string(a.Body), `"engineVersion":"2"`, path)
	}
	events, err := c.Finish(within(t, time.Minute), start(t, c, `{"workflowId":"quiet"}`))
	require.NoError(t, err, "the other runs continue")
	require.Equal(t, "run.completed", events[len(events)-1].Type)
	h.AwaitLog("run left to a newer dispatcher")
	require.Equal(t, 1, strings.Count(h.Log(), "run left to a newer dispatcher"), "%s", h.Log())
}
