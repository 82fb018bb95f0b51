package tools

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/mcp"
	"waybill.dev/waybill/test/harness"
)

// The longest text of a tool fits the run's log, in the end of its node and in the run's.
func TestMCP_RecordsTheLongestText(t *testing.T) {
	t.Parallel()
	needsHost(t)
	server := mcp.New(mcp.Options{})
	t.Cleanup(server.Close)
	text := strings.Repeat(`"\n`, (2<<20-2048)/5) // each byte of it is escaped
	long := mcp.Text(strings.Repeat("x", 2<<20-2048))
	server.Enqueue(mcp.Reply{Result: long}, mcp.Reply{Result: mcp.Text(text)})
	h := harness.Start(t, "--mcp-server", "every="+server.URL(), "--workflows",
		write(t, "long", node("fetch", "core.mcp.callTool", `{"server":"every","tool":"say"}`, ""), "", `{}`))
	for _, want := range []int{2<<20 - 2048, len(text)} {
		events := run(t, h.Client("dev-key"), "long")
		require.Equal(t, "run.completed", events[len(events)-1].Type, "%.300s", events[len(events)-1].Raw)
		var got string
		require.NoError(t, json.Unmarshal(outputs(t, events, "fetch")["output"], &got))
		require.Len(t, got, want)
		require.Greater(t, len(outputs(t, events, "fetch")["content"]), want)
	}
}

// Progress of a tool is in the run's events, without words of the tool. A replay has the same events.
func TestMCP_ShowsTheProgressOfATool(t *testing.T) {
	t.Parallel()
	server := everything(t)["stdio"]
	h := harness.Start(t, "--mcp-server", server, "--workflows", write(t, "slow",
		node("fetch", "core.mcp.callTool", `{"server":"every","tool":"trigger-long-running-operation","arguments":{"duration":1,"steps":4}}`, ""), "", `{}`))
	c := h.Client("dev-key")
	events := run(t, c, "slow")
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", events[len(events)-1].Raw)
	e := of(t, events, "log.appended", "fetch")
	require.Regexp(t, `"fields":\{"reason":"tool_progress","progress":[1-4],"total":4\}`, string(e.Payload))
	require.Equal(t, "untrusted", e.ContentTrust)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs/"+e.RunID+":fork", `{"mode":"replay","fromSeq":0}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var fork struct{ RunID string }
	require.NoError(t, a.JSON(&fork))
	again, err := c.Finish(ctx, fork.RunID)
	require.NoError(t, err)
	require.Len(t, again, len(events))
	for i := range again {
		require.Equal(t, events[i].Type, again[i].Type)
	}
}
