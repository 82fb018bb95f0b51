package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type debugBundle struct {
	BundleVersion string
	Run           struct{ RunID, Status string }
	Events        []struct {
		Sequence int
		Type     string
	}
	Spans []struct {
		Name, TraceID, SpanID string
		ParentSpanID          *string
	}
	Metrics struct {
		EventCount  int
		OpenwopCost *struct{ Tokens struct{ Input, Output int } }
	}
}

// OpenWOP host contract §10.4.
func TestDebugBundle_TellsTheCourseOfARun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const canary = "bundle-canary-8d1f0c"
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"typed","inputs":{"text":"`+canary+`"}}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.Equal(t, http.StatusCreated, a.Status)
	var made created
	require.NoError(t, a.JSON(&made))
	events, err := c.Finish(t.Context(), made.RunID)
	require.NoError(t, err)

	a = do(t, c, http.MethodGet, "/v1/runs/"+made.RunID+"/debug-bundle", "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.NotContains(t, string(a.Body), canary)
	var b debugBundle
	require.NoError(t, json.Unmarshal(a.Body, &b))
	require.Equal(t, "completed", b.Run.Status)
	require.Len(t, b.Events, len(events))
	require.Equal(t, len(events), b.Metrics.EventCount)
	for i, e := range events {
		require.Equal(t, i, b.Events[i].Sequence)
		require.Equal(t, e.Type, b.Events[i].Type)
	}
	root := b.Spans[0]
	require.Equal(t, "openwop.run", root.Name)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", root.TraceID)
	require.Equal(t, "b7ad6b7169203331", *root.ParentSpanID)
}

func TestDebugBundle_IsCutToWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/debug-bundle?maxEvents=2", "")
	require.Equal(t, http.StatusOK, a.Status)
	var b debugBundle
	require.NoError(t, json.Unmarshal(a.Body, &b))
	require.Len(t, b.Events, 2)
	require.Equal(t, events[len(events)-1].Type, b.Events[1].Type)
	require.Contains(t, string(a.Body), `"truncatedReason":"events_truncated_to_max_events"`)
	for _, bad := range []string{"0", "-1", "x", "1.5"} {
		a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/debug-bundle?maxEvents="+bad, "")
		require.Equal(t, "validation_error", a.Code(), bad)
	}
}

func TestDebugBundle_IsForWhoMayReadTheRun(t *testing.T) {
	t.Parallel()
	id, _ := run(t, client(t, testKey), `{"workflowId":"noop"}`)
	for key, status := range map[string]int{
		"": http.StatusUnauthorized, writerKey: http.StatusForbidden, otherKey: http.StatusNotFound, readerKey: http.StatusOK,
	} {
		a := do(t, client(t, key), http.MethodGet, "/v1/runs/"+id+"/debug-bundle", "")
		require.Equal(t, status, a.Status, key)
	}
	a := do(t, client(t, testKey), http.MethodGet, "/v1/runs/ghost/debug-bundle", "")
	require.Equal(t, "run_not_found", a.Code())
}
