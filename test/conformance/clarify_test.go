package conformance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OpenWOP envelope contract §3.3, host contract §3.5: a model's question suspends its node, and the
// answer goes back to the model.
func TestClarification_OfAModelWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const nodeID = "clarifying-node"
	a := do(t, c, http.MethodPost, "/v1/workflows", definition("model-asks",
		node(nodeID, "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","envelopeType":"vendor.waybill.ticket.triage","prompt":"hi","expectsStreaming":false}`, "{}"), "", "", ""))
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	program(t, c, nodeID, `{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?","schema":{"enum":["blue"]}}]}}`, triage)
	id := create(t, c, `{"workflowId":"model-asks"}`).RunID
	await(t, c, id, 30*time.Second, "waiting-input")
	var w waiting
	require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+id, "").JSON(&w))
	require.Equal(t, "clarification", w.Interrupt.Kind)
	require.Equal(t, nodeID, w.CurrentNodeID)
	require.Equal(t, http.StatusUnprocessableEntity, answer(t, c, id, nodeID, `{"answers":{"q1":"red"}}`).Status)
	require.Equal(t, http.StatusOK, answer(t, c, id, nodeID, `{"answers":{"q1":"blue"}}`).Status)
	events, err := c.Finish(within(t, 30*time.Second), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started provider.usage clarification.requested interrupt.requested node.suspended "+
		"interrupt.resolved clarification.resolved node.resumed provider.usage artifact.created node.completed run.completed", strings.Join(names(events), " "))
}
