package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// figures is what the tests read of GET /v1/statistics.
type figures struct {
	StepSeconds int `json:"stepSeconds"`
	Runs        struct {
		Created, Completed, Failed int
		P95Ms                      *int `json:"p95Ms"`
	}
	Usage struct {
		Calls, Answers, Corrected, Retries int
		AcceptedFirst                      int `json:"acceptedFirst"`
	}
	Points    []struct{ At string }
	Workflows []struct{ WorkflowID string }
	Refusals  []struct {
		Gate, Reason, Kind string
		Count              int
	}
}

func readFigures(t *testing.T, c *harness.Client, query ...string) (out figures) {
	t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	a := doing(t, c, http.MethodGet, "/v1/statistics?"+values.Encode(), "", http.StatusOK)
	require.NoError(t, json.Unmarshal(a.Body, &out))
	return out
}

// Statistics include every run that was acknowledged before, survive a kill without counting twice,
// and are gone with the tenant's last run.
func TestStatistics_FollowRunsThroughAKillAndAnErasure(t *testing.T) {
	t.Parallel()
	needsHost(t)
	schemas := harness.LoadSchemas(t)
	h := harness.StartWith(t, harness.Options{Args: []string{"--test-seams", "--demo-runs=false", "--lease", "1s"}})
	c := h.Client("dev-key")
	flow := one("sorts", "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","envelopeContract":{"accepts":["vendor.waybill.ticket.triage"]},"prompt":"hi","expectsStreaming":false}`)
	put(t, c, strings.Replace(flow, `"id":"gate"`, `"id":"sorts"`, 1))
	const good = `{"reasoning":"charged twice","category":"billing","priority":"urgent","language":"en","summary":"Second charge.","action":{"kind":"refund","orderId":"WL-48213","reason":"double charge"}}`
	envelope := func(payload string) string {
		return `{"type":"vendor.waybill.ticket.triage","payload":` + payload + `}`
	}
	script(t, c, "sorts", envelope(good))
	_, snap := finish(t, c, schemas, start(t, c, `{"workflowId":"sorts"}`))
	require.Equal(t, "completed", snap.Status, "%+v", snap.Error)
	script(t, c, "sorts", envelope(`{"category":"perhaps"}`), envelope(good))
	corrected := start(t, c, `{"workflowId":"sorts"}`)
	_, snap = finish(t, c, schemas, corrected)
	require.Equal(t, "completed", snap.Status, "%+v", snap.Error)

	check := func(c *harness.Client) {
		got := readFigures(t, c)
		require.Equal(t, 3600, got.StepSeconds)
		require.Equal(t, []int{2, 2, 0}, []int{got.Runs.Created, got.Runs.Completed, got.Runs.Failed})
		require.NotNil(t, got.Runs.P95Ms)
		require.Equal(t, []int{3, 2, 1, 1, 1}, []int{got.Usage.Calls, got.Usage.Answers, got.Usage.AcceptedFirst, got.Usage.Corrected, got.Usage.Retries})
		require.Len(t, got.Refusals, 1)
		require.Equal(t, "payload", got.Refusals[0].Gate)
		require.Equal(t, "schema-violation", got.Refusals[0].Reason)
		require.NotEmpty(t, got.Points)
	}
	check(c)
	h.Kill()
	h.Launch()
	c = h.Client("dev-key")
	check(c)
	require.Equal(t, 300, readFigures(t, c, "since", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)).StepSeconds)
	require.Zero(t, readFigures(t, c, "workflowId", "another").Runs.Created)

	var page struct {
		Answers []struct {
			RunID     string `json:"runId"`
			Outcome   string
			Calls     int
			Documents []struct {
				Kind    string
				Payload json.RawMessage
			}
		}
	}
	a := doing(t, c, http.MethodGet, "/v1/answers?outcome=accepted", "", http.StatusOK)
	require.NoError(t, json.Unmarshal(a.Body, &page))
	require.Len(t, page.Answers, 2)
	require.Equal(t, corrected, page.Answers[0].RunID)
	require.Equal(t, 2, page.Answers[0].Calls)
	require.Len(t, page.Answers[0].Documents, 1)
	require.Equal(t, "vendor.waybill.ticket.triage", page.Answers[0].Documents[0].Kind)
	require.JSONEq(t, good, string(page.Answers[0].Documents[0].Payload))

	doing(t, c, http.MethodDelete, "/v1/runs/"+corrected, "", http.StatusNoContent)
	check(c)
	doing(t, c, http.MethodDelete, "/v1/runs/"+page.Answers[1].RunID, "", http.StatusNoContent)
	require.Eventually(t, func() bool { return len(readFigures(t, c).Points) == 0 }, 30*time.Second, 20*time.Millisecond)
}
