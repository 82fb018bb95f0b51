package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// OpenWOP envelope contract §6, step 0: a host without host.aiEnvelope advertises no kinds, providers and
// models, and rejects runs with nodes that emit envelopes. Other workflows are executed.
func TestEnvelopes_CanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--ai-envelope=false")
	c := h.Client("dev-key")
	a, err := c.Do(t.Context(), http.MethodGet, "/.well-known/openwop", "")
	require.NoError(t, err)
	var d map[string]any
	require.NoError(t, a.JSON(&d))
	require.Empty(t, d["supportedEnvelopes"])
	require.NotNil(t, d["limits"])
	for _, family := range []string{"envelopes", "envelopeContracts", "envelopeStrictness", "modelCapabilities", "aiProviders", "providerUsage", "prompts", "agents"} {
		require.NotContains(t, d, family)
	}
	a, err = c.Do(t.Context(), http.MethodGet, "/schemas/envelopes/error.schema.json", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.Status)

	const model = `{"id":"asks","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` +
		`{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"inputs":{},"config":{"prompt":"hello"}}]}`
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/workflows", model)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"asks"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Equal(t, "capability_required", a.Code())
	var refused struct{ Details map[string]string }
	require.NoError(t, a.JSON(&refused))
	require.Equal(t, map[string]string{"requiredCapability": "host.aiEnvelope", "offendingTypeId": "core.ai.callPrompt", "nodeId": "a"}, refused.Details)

	const plain = `{"id":"plain","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` +
		`{"id":"a","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"inputs":{},"config":{}}]}`
	events, err := c.Finish(t.Context(), startFlow(t, c, "plain", plain))
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.completed run.completed", typeLine(events))
}

// A run that waits while its host is switched off fails at its next node, which does not start.
func TestEnvelopes_SwitchedOffForARunInProgress(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	h := harness.StartIn(t, dir)
	c := h.Client("dev-key")
	const doc = `{"id":"later","name":"n","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` +
		`{"id":"gate","typeId":"core.approvalGate","name":"n","position":{"x":0,"y":0},"inputs":{},"config":{"title":"t","actions":["accept"]}},` +
		`{"id":"ask","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"inputs":{},"config":{"prompt":"hello"}}],` +
		`"edges":[{"id":"e","sourceNodeId":"gate","targetNodeId":"ask"}]}`
	id := startFlow(t, c, "later", doc)
	require.Eventually(t, func() bool { return status(t, c, id) == "waiting-approval" }, 30*time.Second, 10*time.Millisecond)
	h.Stop()
	h = harness.StartIn(t, dir, "--ai-envelope=false")
	c = h.Client("dev-key")
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	events, err := c.Finish(t.Context(), id)
	require.NoError(t, err)
	last := events[len(events)-1]
	require.Equal(t, "run.failed", last.Type)
	require.Contains(t, string(last.Payload), "capability_required")
	require.NotContains(t, typeLine(events[len(events)-2:]), "node.started")
}
