package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

type family struct {
	RunID, Status, CurrentNodeID, ParentRunID, ParentNodeID string
	Inputs, Variables                                       map[string]any
	ChildRuns                                               []struct{ RunID, Status string }
}

func relations(t *testing.T, c *harness.Client, runID string) family {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var f family
	require.NoError(t, a.JSON(&f))
	return f
}

// asker returns the run with the question: the run itself, or a child it waits for.
func asker(t *testing.T, c *harness.Client, runID string) string {
	t.Helper()
	for _, child := range relations(t, c, runID).ChildRuns {
		return asker(t, c, child.RunID)
	}
	return runID
}

// The fixtures of sub-workflows follow their descriptions.
func TestFixtures_SubWorkflows(t *testing.T) {
	t.Parallel()
	c := seamHost(t)
	schemas := harness.LoadSchemas(t)
	complete := func(t *testing.T, id string) (parent, child family) {
		runID := start(t, c, `{"workflowId":"`+id+`"}`)
		answer(t, c, id, runID)
		_, snap := finish(t, c, schemas, runID)
		require.Equal(t, "completed", snap.Status)
		parent = relations(t, c, runID)
		require.Len(t, parent.ChildRuns, 1)
		require.Equal(t, "completed", parent.ChildRuns[0].Status)
		_, _ = finish(t, c, schemas, parent.ChildRuns[0].RunID)
		child = relations(t, c, parent.ChildRuns[0].RunID)
		require.Equal(t, runID, child.ParentRunID)
		require.Equal(t, "subwf-call", child.ParentNodeID)
		return parent, child
	}
	t.Run("outputMapping", func(t *testing.T) {
		parent, _ := complete(t, "conformance-subworkflow-parent")
		require.Equal(t, "child-completed", parent.Variables["childOutcome"])
	})
	t.Run("inputMapping overrides the child's default", func(t *testing.T) {
		_, child := complete(t, "conformance-subworkflow-input-mapping")
		require.Equal(t, "prd-1", child.Variables["receivedPrdId"])
		require.Equal(t, "prd-1", child.Inputs["receivedPrdId"])
	})
	t.Run("an unset variable is absent", func(t *testing.T) {
		_, child := complete(t, "conformance-subworkflow-input-mapping-no-default")
		require.NotContains(t, child.Variables, "receivedPrdId")
	})
	t.Run("inputs are passed once", func(t *testing.T) {
		_, child := complete(t, "conformance-subworkflow-mid-run-mutation")
		require.Equal(t, "seeded-id", child.Variables["receivedPrdId"])
	})
	t.Run("a cancellation cascades", func(t *testing.T) {
		runID := start(t, c, `{"workflowId":"conformance-interrupt-parent-child-cancel"}`)
		require.Eventually(t, func() bool { return relations(t, c, runID).Status == "waiting-approval" }, 30*time.Second, 20*time.Millisecond)
		parent := relations(t, c, runID)
		require.Equal(t, "spawn-child", parent.CurrentNodeID)
		child := parent.ChildRuns[0].RunID
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/cancel", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		events, snap := finish(t, c, schemas, child)
		require.Equal(t, "cancelled", snap.Status)
		require.JSONEq(t, `{"reason":"parent-cancelled","cancelledBy":"system","parentRunId":"`+runID+`"}`, string(events[len(events)-1].Payload))
		a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs/"+child+"/interrupts/child-gate", `{"resumeValue":{"action":"accept"}}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusGone, a.Status, "%s", a.Body)
		require.Equal(t, "cancelled", relations(t, c, runID).Status)
	})
}
