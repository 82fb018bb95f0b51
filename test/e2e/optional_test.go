package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// An optional variable without a value is empty in a prompt, and in what a reviewer reads.
func TestOptional_VariablesWithoutAValueAreEmpty(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	schemas := harness.LoadSchemas(t)
	variables := func(flow string) string {
		return strings.Replace(flow, `"variables":[]`, `"variables":[{"name":"note","type":"string"},{"name":"mail","type":"string"}]`, 1)
	}
	put(t, c, variables(one("optional-prompt", "core.ai.callPrompt", `{"provider":"sample","model":"sample-1","prompt":"Mail: {{mail}}. Note: {{note}}."}`)))
	_, snap := finish(t, c, schemas, start(t, c, `{"workflowId":"optional-prompt","inputs":{"mail":"hi"}}`))
	require.Equal(t, "completed", snap.Status)

	put(t, c, variables(one("optional-title", "core.approvalGate", `{"title":"Answer {{mail}}?","description":"Note:{{note}}.","actions":["accept"]}`)))
	run := start(t, c, `{"workflowId":"optional-title","inputs":{"mail":"with sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-AAAAAAAA"}}`)
	require.Eventually(t, func() bool { return status(t, c, run) == "waiting-approval" }, 30*time.Second, 10*time.Millisecond)
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+run, "")
	require.NoError(t, err)
	require.NotContains(t, string(a.Body), "sk-ant-api03", "redacted")
	a, err = c.Do(t.Context(), http.MethodGet, "/v1/runs/"+run+"/events/poll", "")
	require.NoError(t, err)
	require.NotContains(t, string(a.Body), "sk-ant-api03", "redacted")
	var page struct {
		Events []struct {
			Type    string          `json:"type"`
			Payload json.RawMessage `json:"payload"`
		} `json:"events"`
	}
	require.NoError(t, a.JSON(&page))
	asked := 0
	for _, e := range page.Events {
		if e.Type == "interrupt.requested" {
			asked++
			require.Contains(t, string(e.Payload), `"title":"Answer with `)
			require.Contains(t, string(e.Payload), `"description":"Note:."`)
		}
	}
	require.Equal(t, 1, asked)
}
