package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// Versions of a workflow can be read and deleted; runs keep theirs.
func TestWorkflows_AreDeletedAndTheirRunsContinue(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--api-key", "a=acme:*", "--api-key", "b=beta:*", "--api-key", "reader=acme:manifest:read")
	c := h.Client("a")
	do := func(c *harness.Client, method, path, body string) (int, string) {
		a, err := c.Do(t.Context(), method, path, body)
		require.NoError(t, err)
		return a.Status, string(a.Body)
	}
	doc := func(version, node string) string {
		return `{"id":"flow","name":"Flow","version":"` + version + `","nodes":[{"id":"` + node + `","typeId":"core.approvalGate","config":{"title":"OK?","actions":["accept"]}}]}`
	}
	for _, v := range []string{"1", "2"} {
		status, body := do(c, http.MethodPost, "/v1/workflows", doc(v, "gate"+v))
		require.Equal(t, http.StatusCreated, status, body)
	}
	_, body := do(c, http.MethodGet, "/v1/workflows/flow/versions", "")
	var list struct {
		WorkflowID string
		Versions   []struct {
			Version, Digest string
			Current         bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list.Versions, 2)
	require.Equal(t, "2", list.Versions[0].Version)
	require.True(t, list.Versions[0].Current)
	status, body := do(c, http.MethodGet, "/v1/workflows/flow?version=1", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, doc("1", "gate1"), body, "verbatim")
	status, _ = do(c, http.MethodGet, "/v1/workflows/flow?version=9", "")
	require.Equal(t, http.StatusNotFound, status)

	runID := start(t, c, `{"workflowId":"flow"}`)
	status, body = do(c, http.MethodDelete, "/v1/workflows/flow?version=2", "")
	require.Equal(t, http.StatusConflict, status, "the current version: %s", body)
	status, _ = do(h.Client("b"), http.MethodDelete, "/v1/workflows/flow", "")
	require.Equal(t, http.StatusNotFound, status, "another tenant")
	status, _ = do(h.Client("reader"), http.MethodDelete, "/v1/workflows/flow", "")
	require.Equal(t, http.StatusForbidden, status)
	status, body = do(c, http.MethodDelete, "/v1/workflows/flow?version=1", "")
	require.Equal(t, http.StatusOK, status, body)
	require.JSONEq(t, `{"workflowId":"flow","versions":["1"]}`, body)
	status, body = do(c, http.MethodDelete, "/v1/workflows/flow", "")
	require.Equal(t, http.StatusOK, status, body)
	require.JSONEq(t, `{"workflowId":"flow","versions":["2"]}`, body)
	for _, path := range []string{"/v1/workflows/flow", "/v1/workflows/flow/versions"} {
		status, _ = do(c, http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, status, path)
	}
	status, _ = do(c, http.MethodDelete, "/v1/workflows/flow", "")
	require.Equal(t, http.StatusNotFound, status)
	status, body = do(c, http.MethodPost, "/v1/runs", `{"workflowId":"flow"}`)
	require.Equal(t, http.StatusNotFound, status, body)

	// The run continues, also on a host that has just started.
	h.Kill()
	h.Restart()
	c = h.Client("a")
	status, _ = do(c, http.MethodGet, "/v1/workflows/flow", "")
	require.Equal(t, http.StatusNotFound, status, "deleted workflows stay deleted")
	eventually(t, "the question is answered", func() bool {
		status, _ := do(c, http.MethodPost, "/v1/runs/"+runID+"/interrupts/gate2", `{"resumeValue":{"action":"accept"}}`)
		return status == http.StatusOK || status == http.StatusConflict
	})
	events, err := c.Finish(t.Context(), runID)
	require.NoError(t, err)
	require.Equal(t, "run.completed", events[len(events)-1].Type)

	// A deleted version never gets other content.
	status, body = do(c, http.MethodPost, "/v1/workflows", doc("2", "other"))
	require.Equal(t, http.StatusConflict, status, body)
	status, body = do(c, http.MethodPost, "/v1/workflows", doc("2", "gate2"))
	require.Equal(t, http.StatusCreated, status, body)
}

// The schemas of files need no credential.
func TestSchemas_AreServedToEditors(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t)
	for path, want := range map[string]int{
		"/schemas/workflow.schema.json":                  http.StatusOK,
		"/schemas/config/core.ai.callPrompt.schema.json": http.StatusOK,
		"/schemas/none.schema.json":                      http.StatusNotFound,
		"/schemas/config":                                http.StatusNotFound,
		"/schemas/../schemas.go":                         http.StatusNotFound,
	} {
		a, err := h.Client("").Do(t.Context(), http.MethodGet, path, "")
		require.NoError(t, err)
		require.Equal(t, want, a.Status, "%s: %s", path, a.Body)
		if want == http.StatusOK {
			require.True(t, json.Valid(a.Body))
			require.Equal(t, "application/schema+json", a.Header.Get("Content-Type"))
		}
	}
	a, err := h.Client("").Do(t.Context(), http.MethodPost, "/schemas/workflow.schema.json", "{}")
	require.NoError(t, err)
	require.Equal(t, http.StatusMethodNotAllowed, a.Status)
}
