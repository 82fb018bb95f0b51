package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// snapshotOf is the snapshot of a fixture's run without its status.
type snapshotOf struct {
	Channels  map[string]json.RawMessage
	Variables map[string]json.RawMessage
	Metrics   struct{ OpenwopCost json.RawMessage }
	Error     struct{ Code, Message string }
}

// ran runs a fixture to its end.
func ran(t *testing.T, c *harness.Client, body string) (runID string, events []harness.Event, v snapshotOf) {
	t.Helper()
	runID = start(t, c, body)
	events, _ = finish(t, c, harness.LoadSchemas(t), runID)
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	require.NoError(t, a.JSON(&v))
	return runID, events, v
}

// payloads returns the payloads of a type's events, each validated against its published schema.
func payloads(t *testing.T, events []harness.Event, typ string) []json.RawMessage {
	t.Helper()
	var out []json.RawMessage
	for _, e := range events {
		if e.Type != typ {
			continue
		}
		var doc struct{ Payload json.RawMessage }
		require.NoError(t, json.Unmarshal(e.Raw, &doc))
		out = append(out, doc.Payload)
	}
	return out
}

// OpenWOP host contract §5.6 and §5.9: only entries written after the wait remain, with the time of
// their write.
func TestChannels_DropExpiredEntriesAtTheNextWrite(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	_, events, v := ran(t, c, `{"workflowId":"conformance-channel-ttl"}`)
	var entries []struct {
		Value string
		TS    float64 `json:"_ts"`
	}
	require.NoError(t, json.Unmarshal(v.Variables["events"], &entries))
	require.Len(t, entries, 1)
	require.Equal(t, "d", entries[0].Value)
	require.Positive(t, entries[0].TS)
	require.JSONEq(t, string(v.Variables["events"]), string(v.Channels["events"]))
	schemas := harness.LoadSchemas(t)
	written := payloads(t, events, "channel.written")
	require.Len(t, written, 4)
	for i, p := range written {
		require.NoError(t, schemas.Validate("channel-written-payload.schema.json", p))
		require.Contains(t, string(p), `"value":"`+string("abcd"[i])+`"`, "the input of the write, not its result")
	}
}

// OpenWOP host contract §5.9: the first message of an id wins, however often it is repeated.
func TestChannels_RecordEachMessageOnce(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	_, events, v := ran(t, c, `{"workflowId":"conformance-message-reducer"}`)
	require.Len(t, payloads(t, events, "channel.written"), 2)
	require.JSONEq(t, `[{"messageId":"emit-duplicate-message-1","role":"assistant","content":"once"}]`, string(v.Channels["messages"]))
}

// OpenWOP host contract §3.5: refused before it starts, with the capability's id.
func TestRequires_AreRejectedBeforeTheNodeStarts(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	_, events, v := ran(t, c, `{"workflowId":"conformance-capability-missing"}`)
	require.Equal(t, []string{"run.started", "node.failed", "run.failed"}, names(events))
	require.Equal(t, "capability_not_provided", v.Error.Code)
	require.Contains(t, v.Error.Message, "conformance.never-provided")
}

// OpenWOP host contract §1.4: requirable capabilities are advertised only if there are any.
func TestDiscovery_ListsRuntimeCapabilitiesIfThereAreAny(t *testing.T) {
	t.Parallel()
	needsHost(t)
	for _, flags := range [][]string{nil, {"--runtime-capability", "vendor.acme.gpu", "--runtime-capability", "net.outbound"}} {
		h := harness.Start(t, flags...)
		a, err := h.Client("dev-key").Do(t.Context(), http.MethodGet, "/.well-known/openwop", "")
		require.NoError(t, err)
		var d map[string]json.RawMessage
		require.NoError(t, a.JSON(&d))
		if flags == nil {
			require.NotContains(t, d, "runtimeCapabilities")
			continue
		}
		require.JSONEq(t, `["net.outbound","vendor.acme.gpu"]`, string(d["runtimeCapabilities"]))
		require.NoError(t, harness.LoadSchemas(t).Validate("capabilities.schema.json", a.Body))
	}
}

// OpenWOP host contract §10.2: listed cost attributes are summed and in spans; others are dropped.
func TestCost_KeepsToTheClosedList(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	runID, events, v := ran(t, c, `{"workflowId":"openwop-smoke-cost-emit"}`)
	require.JSONEq(t, `{"usd":0.00123,"tokens":{"input":100,"output":50},"provider":"anthropic"}`, string(v.Metrics.OpenwopCost))
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/host/sample/test/otel/spans?runId="+runID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), `"openwop.cost.tokens.total":150`)
	for _, hidden := range []string{"openwop.cost.evil", "leaked_token", "CANARY"} {
		require.NotContains(t, string(a.Body), hidden)
		for _, e := range events {
			require.NotContains(t, string(e.Raw), hidden)
		}
	}
	require.Len(t, payloads(t, events, "node.completed"), 1)
	require.Empty(t, payloads(t, events, "provider.usage"), "no provider was called")
}

// OpenWOP host contract §5.6: the secret was resolved, and appears nowhere.
func TestSecretEcho_ProvesTheSecretWithoutDisclosingIt(t *testing.T) {
	const canary = "the-suite-s-canary-value-4711"
	t.Setenv("OPENWOP_CANARY_SECRET_VALUE", canary)
	c := seamHost(t)
	runID, events, v := ran(t, c, `{"workflowId":"openwop-smoke-byok-roundtrip"}`)
	sum := sha256.Sum256([]byte(canary))
	require.JSONEq(t, `{"secretSha256":"`+hex.EncodeToString(sum[:])+`","secretLength":29}`, string(v.Variables["resolve-secret"]))
	var all strings.Builder
	for _, e := range events {
		all.Write(e.Raw)
	}
	for _, path := range []string{"/v1/runs/" + runID, "/v1/runs/" + runID + "/debug-bundle", "/v1/host/sample/test/otel/spans?runId=" + runID} {
		a, err := c.Do(t.Context(), http.MethodGet, path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, path)
		all.Write(a.Body)
	}
	require.NotContains(t, all.String(), canary)
}

// OpenWOP host contract §5.6: a side effect, recorded with its outcome.
func TestSideEffect_RecordsItsOutcome(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	_, events, _ := ran(t, c, `{"workflowId":"conformance-replay-side-effect","inputs":{"delayMs":1}}`)
	require.Equal(t, []string{
		"run.started", "node.started", "node.completed", "node.started", "log.appended", "node.completed", "run.completed",
	}, names(events))
	done := payloads(t, events, "node.completed")
	require.Contains(t, string(done[1]), `"performed":true`)
}

// OpenWOP host contract §5.7: the fixture's run is the same under every supported engine version.
func TestVersionFold_RunsUnderTheEnginesVersion(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"conformance-version-fold"}`, "X-Force-Engine-Version", "1")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var run struct{ RunID string }
	require.NoError(t, a.JSON(&run))
	events, snap := finish(t, c, harness.LoadSchemas(t), run.RunID)
	require.Equal(t, "completed", snap.Status)
	require.Equal(t, []string{"run.started", "node.started", "node.completed", "run.completed"}, names(events))
}
