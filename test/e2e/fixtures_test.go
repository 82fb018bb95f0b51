package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/fixture"
	"waybill.dev/waybill/test/harness"
)

// fixtureIDs are the published fixtures whose node types are all supported.
func fixtureIDs(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, f := range fixture.All(t) {
		ids = append(ids, f.ID)
	}
	return ids
}

// reliability are the events between node.started and the node's end.
var reliability = map[string]string{
	"conformance-envelope-retry-attempted":           "provider.usage envelope.retry.attempted provider.usage",
	"conformance-envelope-retry-exhausted":           "provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.retry.exhausted cap.breached",
	"conformance-envelope-truncated":                 "provider.usage envelope.truncated envelope.retry.attempted provider.usage",
	"conformance-envelope-truncation-cap-exhaustion": "provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.exhausted cap.breached",
	"conformance-envelope-refusal":                   "provider.usage envelope.refusal",
	"conformance-envelope-recovery-applied":          "provider.usage envelope.recovery.applied",
	"conformance-envelope-nl-to-format-engaged":      "provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.nlToFormat.engaged provider.usage",
}

// answer waits until a run has a question, and answers it.
func answer(t *testing.T, c *harness.Client, id, runID string) {
	t.Helper()
	want, ok := fixture.Asks[id]
	if !ok {
		return
	}
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
		return err == nil && strings.Contains(string(a.Body), `"status":"`+want.Status+`"`)
	}, time.Minute, 20*time.Millisecond, "the run waits for an answer")
	runID = asker(t, c, runID)
	for i, value := range want.Answers {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/interrupts/"+want.Node, `{"resumeValue":`+value+`}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "answer %d: %s", i, a.Body)
	}
}

func TestFixtures_AdvertiseExactlyWhatCanRun(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	a, err := c.Do(t.Context(), http.MethodGet, "/.well-known/openwop", "")
	require.NoError(t, err)
	var d struct{ Fixtures []string }
	require.NoError(t, a.JSON(&d))
	require.Equal(t, fixtureIDs(t), d.Fixtures)
	require.NoError(t, harness.LoadSchemas(t).Validate("capabilities.schema.json", a.Body))
}

func TestFixtures_MatchTheirDescriptions(t *testing.T) {
	t.Parallel()
	c := seamHost(t)
	schemas := harness.LoadSchemas(t)
	// Sequential: scripts are queued by node id, and fixtures share ids.
	for _, id := range fixtureIDs(t) {
		t.Run(id, func(t *testing.T) {
			if s, ok := fixture.Scripts[id]; ok {
				program(t, c, s)
			}
			req := fixture.RequestOf(id)
			runID := start(t, c, req.Body(id))
			if req.Status == "cancelled" {
				a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/cancel", `{"reason":"test"}`)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			}
			answer(t, c, id, runID)
			events, snap := finish(t, c, schemas, runID)
			require.Equal(t, req.Status, snap.Status, "%v", names(events))
			if req.Code != "" {
				require.Equal(t, req.Code, snap.Error.Code)
				require.NotContains(t, snap.Error.Message, "xyzzy", "refusal text stays in its event")
			}
			if want, ok := reliability[id]; ok {
				require.Equal(t, want, harness.Between(events))
				if req.Status == "failed" {
					require.Equal(t, []string{"node.failed", "run.failed"}, names(events)[len(events)-2:], "the node's end follows, then the run's")
				}
			}
			if id == "conformance-identity" {
				require.JSONEq(t, `{"n":9007199254740993,"list":[1,null,{"x":"y"}]}`, string(snap.Variables["payload"]))
			}
		})
	}
}

func program(t *testing.T, c *harness.Client, script string) {
	t.Helper()
	for _, node := range []string{"structured-call", "nondet", "call", "tool", "ai"} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/host/sample/test/mock-ai/program", `{"nodeId":"`+node+`","program":`+script+`}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
}

func TestTruncation_DoublesTheBudgetOnTheWire(t *testing.T) {
	t.Parallel()
	c := seamHost(t)
	program(t, c, fixture.Scripts["conformance-envelope-truncated"])
	_, err := c.Finish(within(t, time.Minute), start(t, c, `{"workflowId":"conformance-envelope-truncated"}`))
	require.NoError(t, err)
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/host/sample/test/mock-ai/last-dispatch-budget?nodeId=structured-call", "")
	require.NoError(t, err)
	require.JSONEq(t, `{"maxTokens":100}`, string(a.Body))
}

func TestSeams_NeedTheFlagAndAKey(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	anonymous := *c
	anonymous.Key = ""
	a, err := anonymous.Do(t.Context(), http.MethodGet, "/v1/host/sample/node-catalog", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, a.Status)
	plain := harness.Start(t)
	a, err = plain.Client("dev-key").Do(t.Context(), http.MethodGet, "/v1/host/sample/node-catalog", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.Status)
}
