package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
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
	await(t, c, id, patience, "waiting-input")
	var w waiting
	require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+id, "").JSON(&w))
	require.Equal(t, "clarification", w.Interrupt.Kind)
	require.Equal(t, nodeID, w.CurrentNodeID)
	require.Equal(t, http.StatusUnprocessableEntity, answer(t, c, id, nodeID, `{"answers":{"q1":"red"}}`).Status)
	require.Equal(t, http.StatusOK, answer(t, c, id, nodeID, `{"answers":{"q1":"blue"}}`).Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started provider.usage clarification.requested interrupt.requested node.suspended "+
		"interrupt.resolved clarification.resolved node.resumed provider.usage artifact.created node.completed run.completed", strings.Join(names(events), " "))
}

// asking registers a workflow whose model asks a question, starts a run of it, and waits for the
// question. more are members of its node.
func asking(t *testing.T, c *harness.Client, id, more string, answers ...string) (runID string) {
	t.Helper()
	runID = startAsking(t, c, id, more, answers...)
	await(t, c, runID, patience, "waiting-input")
	return runID
}

// startAsking is asking without waiting.
func startAsking(t *testing.T, c *harness.Client, id, more string, answers ...string) (runID string) {
	t.Helper()
	n := node(id, "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","envelopeType":"vendor.waybill.ticket.triage","prompt":"hi","expectsStreaming":false}`, "{}")
	a := do(t, c, http.MethodPost, "/v1/workflows", definition(id, strings.TrimSuffix(n, "}")+more+"}", "", "", ""))
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	program(t, c, id, append([]string{`{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?"}]}}`}, answers...)...)
	return create(t, c, `{"workflowId":"`+id+`"}`).RunID
}

// requireReplayed requires that a replay has the events of its source.
func requireReplayed(t *testing.T, c *harness.Client, id string, events []harness.Event) {
	t.Helper()
	require.Equal(t, names(events), names(forkEvents(t, c, id, `{"mode":"replay"}`)), "a replay asks no questions")
}

// A person can decline to answer a model's question. The model continues without the answer, or its
// node fails.
func TestClarification_CanBeDeclined(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := asking(t, c, "model-declined", "", triage)
	var w waiting
	require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+id, "").JSON(&w))
	require.Contains(t, string(w.Interrupt.Payload["resumeSchema"]), `"declined"`, "a client can see that it may decline")
	require.Equal(t, http.StatusBadRequest, answer(t, c, id, "model-declined", `{"declined":true,"answers":{"q1":"x"}}`).Status)
	a := answer(t, c, id, "model-declined", `{"declined":true,"reason":"not known yet"}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), `"outcome":"declined"`)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "interrupt.resolved clarification.resolved node.resumed provider.usage artifact.created node.completed run.completed", strings.Join(names(events)[6:], " "))
	require.Contains(t, string(events[6].Payload), `"not known yet"`)
	require.Contains(t, string(events[7].Payload), `"declined":true`)
	require.Equal(t, "interrupt_already_resolved", answer(t, c, id, "model-declined", `{"answers":{"q1":"x"}}`).Code())
	requireReplayed(t, c, id, events)

	id = asking(t, c, "model-declined-fails", `,"settings":{"questions":{"onDecline":"fail"}}`)
	require.Equal(t, http.StatusOK, answer(t, c, id, "model-declined-fails", `{"declined":true}`).Status)
	events, err = c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "interrupt.resolved clarification.resolved node.failed run.failed", strings.Join(names(events)[6:], " "))
	require.Contains(t, string(events[8].Payload), `"interrupt_rejected"`)
	requireReplayed(t, c, id, events)

	gate, _ := suspended(t, client(t, liveKey), "clarify", "waiting-input")
	a = answer(t, client(t, liveKey), gate, "ask", `{"declined":true}`)
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "/resumeValue/declined")
}

// OpenWOP host contract §6.5: without an answer in time, the node fails.
func TestClarification_OfAModelTimesOut(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := startAsking(t, c, "model-late", `,"settings":{"questions":{"timeoutMs":1200}}`)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "interrupt.requested node.suspended interrupt.resolved node.failed run.failed", strings.Join(names(events)[4:], " "))
	require.Contains(t, string(events[4].Payload), `"timeoutMs":1200`)
	require.Contains(t, string(events[6].Payload), `"reason":"timeout"`)
	require.Contains(t, string(events[7].Payload), `"interrupt_timeout"`)
	require.Equal(t, "interrupt_expired", answer(t, c, id, "model-late", `{"answers":{"q1":"x"}}`).Code())
	requireReplayed(t, c, id, events)
}
